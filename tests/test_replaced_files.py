"""Files that are replaced: whole or not at all, with the permissions and the links they had."""

import os
import stat
import threading

import pytest

from kernelmetric import NCA, load, save
from kernelmetric.shipping._files import replace_file, write_atomically

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")


@pytest.fixture
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@posix
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002], indirect=True)
def test_a_new_file_has_what_the_umask_leaves(umask, labelled, tmp_path):
    path = save(NCA(2).fit(*labelled), tmp_path / "a.metric")
    assert mode(path) == 0o666 & ~umask


@posix
@pytest.mark.parametrize("umask", [0o022], indirect=True)
@pytest.mark.parametrize("kept", [0o600, 0o640, 0o664])
def test_a_replaced_file_keeps_its_permissions(umask, kept, tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(kept)
    write_atomically(path, "new")
    assert path.read_text() == "new"
    assert mode(path) == kept


@posix
@pytest.mark.parametrize("umask", [0o022], indirect=True)
def test_a_private_file_is_private_while_it_is_written(umask, tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o600)
    seen = []

    def write(stream):
        stream.write(b"secret")
        stream.flush()
        seen.extend(mode(found) for found in tmp_path.iterdir())

    replace_file(path, write)
    assert seen == [0o600, 0o600]


@posix
def test_a_link_stays_a_link_and_its_file_is_replaced(labelled, tmp_path):
    (tmp_path / "far").mkdir()
    link, target = tmp_path / "link.metric", tmp_path / "far" / "target.metric"
    link.symlink_to(target)  # of a file that is not there yet
    for n_components in (2, 3):
        assert save(NCA(n_components).fit(*labelled), link) == link
        assert link.is_symlink()
        assert load(target).n_components == n_components
    assert [found.name for found in tmp_path.iterdir() if found.is_file()] == ["link.metric"]


@posix
def test_a_pipe_is_written_to_and_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=write_atomically, args=(tmp_path / "pipe", "through"))
    writer.start()
    assert (tmp_path / "pipe").read_text() == "through"
    writer.join(20)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")

    def write(stream):
        stream.write(b"half of ")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_file(path, write)
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["a"]


def test_a_folder_is_no_file_to_write_to(tmp_path):
    with pytest.raises(OSError, match=r"[Dd]irectory|[Pp]ermission"):
        write_atomically(tmp_path, "new")


def test_two_writers_at_once_leave_one_whole_file(tmp_path):
    contents = [letter * 200_000 for letter in "abcdefgh"]
    writers = [
        threading.Thread(target=write_atomically, args=(tmp_path / "a", c)) for c in contents
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    assert (tmp_path / "a").read_text() in contents
    assert len(list(tmp_path.iterdir())) == 1
