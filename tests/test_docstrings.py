"""numpydoc validation of the public API: what is documented is what is there."""

import inspect
import operator

import pytest

import kernelmetric
from kernelmetric import tables

validation = pytest.importorskip("numpydoc.validate", reason="numpydoc comes with the group `lint`")

# Checks of numpydoc we do not apply, each with its reason. The list of all:
# numpydoc.validate.ERROR_MSGS.
IGNORED = {
    "ES01": "a formula and a Parameters section often need no extended summary",
    "GL01": "the summary starts on the line of the quotes (ruff checks the layout)",
    "GL02": "ruff checks where the closing quotes stand",
    "PR08": "a description may begin with a formula or a name in lower case",
    "RT02": "a result may have a name: 'self : object', as scikit-learn writes it",
    "RT04": "a description may begin with a formula or a name in lower case",
    "SA01": "See Also only where there is something to compare",
    "SA04": "a See Also entry may speak for itself by its name",
    "SS05": "summaries may begin with a noun: 'Gaussian kernel', 'Distances between ...'",
}
IGNORED_ON_METHODS = {
    "EX01": "the example of the class shows the method at work",
}
# scikit-learn generates these from the signature of fit, transform, ...
GENERATED = ("set_", "get_metadata_routing")


def _public_objects():
    """Yield (dotted name, is a method) of every public class, function and method of ours."""
    of_rooms = [f"{room}.{name}" for name, room in kernelmetric._MOVED.items()]
    of_rooms += [f"tables.{name}" for name in tables.__all__ if not name.startswith("is_")]
    for name in [*kernelmetric.__all__, *of_rooms]:
        thing = operator.attrgetter(name)(kernelmetric)
        if inspect.ismodule(thing):  # a room that is public as a whole
            members = [(f"{thing.__name__}.{m}", getattr(thing, m)) for m in thing.__all__]
        else:
            members = [(f"kernelmetric.{name}", thing)]
        for path, member in members:
            if not callable(member):
                continue
            yield path, False
            if inspect.isclass(member):
                yield from ((f"{path}.{method}", True) for method in _own_methods(member))


def _own_methods(cls):
    for name, member in inspect.getmembers(cls):
        if name.startswith("_") or name.startswith(GENERATED):
            continue
        function = member.fget if isinstance(member, property) else inspect.unwrap(member)
        module = getattr(function, "__module__", None) or ""  # built-in methods have none
        if inspect.isroutine(function) and module.startswith("kernelmetric."):
            yield name


@pytest.mark.parametrize(
    ("path", "is_method"), [pytest.param(*case, id=case[0]) for case in _public_objects()]
)
def test_docstring_is_valid_numpydoc(path, is_method):
    ignored = IGNORED | IGNORED_ON_METHODS if is_method else IGNORED
    errors = validation.validate(path)["errors"]
    found = [f"{code}: {message}" for code, message in errors if code not in ignored]
    assert not found, f"{path}\n" + "\n".join(found)


def test_the_ignored_checks_exist():
    assert set(IGNORED | IGNORED_ON_METHODS) <= set(validation.ERROR_MSGS)
