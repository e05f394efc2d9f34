"""Files are written whole or not at all, with the rights that their user chose."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from kernelmetric import NCA, load, save
from kernelmetric.shipping import _files, replace_file, write_atomically

posix = pytest.mark.skipif(os.name != "posix", reason="modes and links as POSIX has them")


@pytest.fixture
def umask():
    """Sets the umask, and sets it back."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@posix
@pytest.mark.parametrize("mask", [0o077, 0o027, 0o022, 0o002])
def test_a_new_file_has_the_mode_that_the_umask_leaves(umask, tmp_path, mask):
    umask(mask)
    assert mode_of(write_atomically(tmp_path / "new", b"")) == 0o666 & ~mask


@posix
def test_a_saved_metric_and_the_link_to_it_keep_the_rules_of_files(umask, labelled, tmp_path):
    umask(0o027)
    link, target = tmp_path / "link.metric", tmp_path / "target.metric"
    link.symlink_to(target)  # of a file that is not there yet
    for n_components in (2, 3):
        assert save(NCA(n_components).fit(*labelled), link) == link
        assert link.is_symlink()
        assert load(target).n_components == n_components
    assert mode_of(target) == 0o640


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_a_file_that_takes_the_place_of_another_has_its_mode(umask, tmp_path, mode):
    umask(0o022)
    path = tmp_path / "old"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert (mode_of(path), path.read_bytes()) == (mode, b"new")


@posix
def test_what_replaces_a_private_file_is_private_while_it_is_written(umask, tmp_path):
    umask(0)
    path = tmp_path / "secret"
    path.touch(0o600)

    def look(stream):
        (part,) = set(tmp_path.iterdir()) - {path}
        assert mode_of(part) == 0o600

    replace_file(path, look)


@posix
def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "real").write_text("old", encoding="utf-8")
    link, second = tmp_path / "link", tmp_path / "second"
    link.symlink_to("elsewhere/real")
    second.symlink_to(link)
    assert write_atomically(second, "new") == second
    assert link.is_symlink()
    assert second.is_symlink()
    assert (folder / "real").read_text(encoding="utf-8") == "new"
    assert [path.name for path in folder.iterdir()] == ["real"]


@posix
def test_a_link_to_a_file_that_is_not_there_yet_makes_it(tmp_path):
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text(encoding="utf-8") == "new"


@posix
def test_links_in_a_circle_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(tmp_path / "a", "new")


@posix
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@posix
def test_a_write_protected_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    path.write_text("old", encoding="utf-8")
    monkeypatch.setattr(os, "access", lambda name, mode: False)  # root may write everywhere
    with pytest.raises(PermissionError, match=r"kept to write to, but it is write-protected"):
        write_atomically(path, "new")
    assert path.read_text(encoding="utf-8") == "old"


def test_a_folder_is_refused_and_stays(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_atomically(tmp_path / "folder", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, error):
    path = tmp_path / "a"
    path.write_text("old", encoding="utf-8")

    def fail(stream):
        stream.write(b"half")
        raise error

    with pytest.raises(error):
        replace_file(path, fail)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_as_long_as_names_may_be_can_be_written(tmp_path):
    path = tmp_path / ("n" * 250)
    assert write_atomically(path, "new").read_text(encoding="utf-8") == "new"


def test_threads_that_write_one_file_leave_the_whole_of_one(tmp_path):
    contents = [letter * 200_000 for letter in "abcdefgh"]
    with ThreadPoolExecutor(len(contents)) as threads:
        list(threads.map(partial(write_atomically, tmp_path / "a"), contents))
    assert (tmp_path / "a").read_text(encoding="utf-8") in contents
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_two_processes_that_write_one_file_leave_the_whole_of_one(tmp_path):
    path = tmp_path / "both"
    code = (  # the module alone: the library takes long to import
        "import runpy, sys; write = runpy.run_path(sys.argv[1])['write_atomically']\n"
        "for _ in range(100): write(sys.argv[2], sys.argv[3] * 100_000)"
    )
    command = [sys.executable, "-c", code, _files.__file__, str(path)]
    writers = [subprocess.Popen([*command, letter]) for letter in "ab"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            text = path.read_text(encoding="utf-8")
            seen.add((text[:1], len(text), len(set(text))))
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen <= {("a", 100_000, 1), ("b", 100_000, 1)}
    assert list(tmp_path.iterdir()) == [path]
