"""Broken `mcp.py` files: one sentence for each mistake, and the rest is served."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module, reload
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from django.apps import AppConfig

import mcp_app
from mcp_app.catalog.autodiscovery import fingerprint, import_modules
from mcp_app.catalog.lint import registry_problems
from mcp_app.catalog.registry import Registry
from tests.drill.running import OWN, ROOT

HEAD = """from mcp_app import mcp

@mcp.tool
def before() -> str:
    return "before"

"""
"""Six lines that each file begins with."""
TAIL = """

@mcp.tool
def after() -> str:
    return "after"
"""
BOTH = "before after"

Discover = Callable[..., tuple[list[str], Registry]]
_numbers = count(1)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The registry that modules get from `from mcp_app import mcp`."""
    registry = Registry()
    monkeypatch.setattr(mcp_app, "mcp", registry)
    return registry


@pytest.fixture
def discover(
    tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Discover]:
    """Import the `mcp.py` of apps that have these files; return the sentences.

    In them "shop" stands for the app's name, whatever it is.
    """
    monkeypatch.syspath_prepend(tmp_path)
    kept = {*sys.modules}

    def run(
        *texts: str, name: str = "mcp", **others: str
    ) -> tuple[list[str], Registry]:
        configs, packages = [], []
        for text in texts:
            package = f"broken_app_{next(_numbers)}"
            folder = tmp_path / package
            for file, content in {"__init__": "", name: text, **others}.items():
                path = Path(folder, *file.split(".")).with_suffix(".py")
                path.parent.mkdir(exist_ok=True)
                path.write_text(content.replace("shop", package))
            packages.append(package)
            configs.append(AppConfig(package, import_module(package)))
        import_modules(registry, configs, name)
        said = registry_problems(registry)
        for package in packages:
            said = [each.replace(str(tmp_path / package), "shop") for each in said]
            said = [each.replace(package, "shop") for each in said]
        return said, registry

    yield run
    for added in {*sys.modules} - kept:
        if added.startswith("broken_app_"):
            del sys.modules[added]


class Broken(NamedTuple):
    """What a file has between its head and its tail, and what comes of it."""

    text: str
    sentence: str
    served: str = BOTH


BROKEN = {
    "a model as the result": Broken(
        "from django.contrib.auth.models import User\n@mcp.tool\ndef users() ->"
        " list[User]: ...",
        "shop/mcp.py:8: shop.mcp.users: the result"
        " list[django.contrib.auth.models.User] has the Django model User, which"
        ' cannot be written as JSON. Return dicts, for example list(qs.values("id",'
        ' "name")).',
    ),
    "a model as the result, with a schema": Broken(
        "from django.contrib.auth.models import User\n"
        '@mcp.tool(output_schema={"type": "object"})\n'
        "def one() -> User: ...",
        "shop/mcp.py:8: shop.mcp.one: the result django.contrib.auth.models.User has"
        " the Django model User, which cannot be written as JSON. Return dicts, for"
        ' example list(qs.values("id", "name")).',
    ),
    "a model as a parameter": Broken(
        "from django.contrib.auth.models import User\n@mcp.tool\ndef show(user: User)"
        " -> str: ...",
        "shop/mcp.py:8: shop.mcp.show: the parameter user takes the Django model User,"
        " which no client can send. Take its key, for example user_id: int, and read"
        " it with User.objects.get(pk=user_id).",
    ),
    "another class as a parameter": Broken(
        "class Money: ...\n@mcp.tool\ndef pay(amount: Money) -> str: ...",
        "shop/mcp.py:8: shop.mcp.pay: the parameter amount: shop.mcp.Money cannot be"
        " written as JSON. Use built-in types, a dataclass, a TypedDict or a pydantic"
        " model.",
    ),
    "an unknown option of tool": Broken(
        '@mcp.tool(titel="Pay")\ndef pay() -> str: ...',
        "shop/mcp.py:7: shop.mcp.pay: @mcp.tool has no option 'titel'. It has title,"
        " timeout, idempotent, destructive, atomic, output_schema, calls_per_minute,"
        " database, position, read_only, open_world, description, input_schema, name,"
        " meta, rule, tags, task, icons, rerun, app_only, ask_first, approval,"
        " permission, groups, app.",
    ),
    "an unknown option of function": Broken(
        '@mcp.function("k", title="Pay")\ndef pay() -> str: ...',
        "shop/mcp.py:7: shop.mcp.pay: @mcp.function has no option 'title'. It has"
        " atomic, database.",
    ),
    "an unknown option of rule": Broken(
        '@mcp.rule("k", argument=True)\ndef may(request) -> bool: ...',
        "shop/mcp.py:7: shop.mcp.may: @mcp.rule has no option 'argument'. It has"
        " arguments.",
    ),
    "a wrong type of an option": Broken(
        '@mcp.tool(permission=["shop.pay"])\ndef pay() -> str: ...',
        "shop/mcp.py:7: shop.mcp.pay: The option permission is ['shop.pay']: it must"
        " be a valid string.",
    ),
    "two of one name in one module": Broken(
        "@mcp.tool\ndef add() -> str: ...\n@mcp.tool\ndef add() -> str: ...",
        "shop/mcp.py:9: shop.mcp.add: the tool 'add' is already declared by"
        " shop.mcp.add (shop/mcp.py:7). Give one of the two another name.",
        f"add {BOTH}",
    ),
    "two of one URI": Broken(
        '@mcp.resource("orders:all")\ndef one() -> str: ...\n'
        '@mcp.resource("orders:all")\ndef two() -> str: ...',
        "shop/mcp.py:9: shop.mcp.two: the resource 'orders:all' is already declared"
        " by shop.mcp.one (shop/mcp.py:7). Give one of the two another URI.",
        f"{BOTH} orders:all",
    ),
    "variables that are no parameters": Broken(
        '@mcp.resource("orders:{number}")\ndef order(pk: str = "") -> str: ...',
        "shop/mcp.py:7: shop.mcp.order has no parameter for the variables number of"
        " orders:{number}. Give it parameters of these names.",
    ),
    "a parameter that is no variable": Broken(
        '@mcp.resource("orders:all")\ndef order(pk: str) -> str: ...',
        "shop/mcp.py:7: shop.mcp.order needs pk, which orders:all does not have as"
        " variables. Add {pk} to the URI, or give defaults.",
    ),
    "resource without its URI": Broken(
        "@mcp.resource\ndef orders() -> str: ...",
        "shop/mcp.py:7: @mcp.resource got shop.mcp.orders. It takes a URI, as in"
        ' @mcp.resource("shop://orders/{number}").',
    ),
    "function without its key": Broken(
        "@mcp.function\ndef pay() -> str: ...",
        "shop/mcp.py:7: @mcp.function got shop.mcp.pay. It takes a key, as in"
        ' @mcp.function("key").',
    ),
    "complete without its argument": Broken(
        '@mcp.complete("letter")\ndef words(value: str) -> list[str]: ...',
        "shop/mcp.py:7: shop.mcp.words: @mcp.complete got 'letter'. Write it like"
        ' @mcp.complete("prompt", "argument").',
    ),
    "an argument that no prompt has": Broken(
        "@mcp.prompt\ndef letter(name: str) -> str: ...\n"
        '@mcp.complete("letter", "nmae")\ndef words(value: str) -> list[str]: ...',
        "shop/mcp.py:9: shop.mcp.words: 'letter' has no argument 'nmae' to complete."
        " It has name.",
        f"{BOTH} letter letter/nmae",
    ),
    "a lambda": Broken(
        "mcp.tool(lambda: 1)",
        "shop/mcp.py:7: shop.mcp.<lambda>: A lambda has no name: write"
        ' mcp.tool("name")(lambda …).',
    ),
    "a class": Broken(
        "@mcp.tool\nclass Pay: ...",
        "shop/mcp.py:7: shop.mcp.Pay is not a function. Write the decorator above a"
        " def.",
    ),
    "an async generator": Broken(
        "@mcp.tool\nasync def lines():\n    yield 1",
        "shop/mcp.py:7: shop.mcp.lines is a generator. Return the whole result, and"
        " report progress with ctx.progress().",
    ),
    "*args": Broken(
        "@mcp.tool\ndef total(*numbers: int) -> int: ...",
        "shop/mcp.py:7: shop.mcp.total takes *numbers: int, but clients must know each"
        " parameter by name. Write numbers: list[int].",
    ),
    "a name with a space": Broken(
        '@mcp.tool("pay now")\ndef pay() -> str: ...',
        "shop/mcp.py:7: shop.mcp.pay: “pay now” cannot be a name: only the letters A-Z"
        " and a-z, digits, and _ - . are allowed, 1 to 128 of them.",
    ),
    "a type that is not imported": Broken(
        '@mcp.tool\ndef pay(amount: "Decimal") -> str: ...',
        "shop/mcp.py:7: shop.mcp.pay: the annotation 'Decimal' of parameter amount"
        " must be readable when the function is registered: name 'Decimal' is not"
        " defined. Import Decimal, and not under TYPE_CHECKING alone.",
    ),
    "a list as a type": Broken(
        "@mcp.tool\ndef orders() -> [dict]: ...",
        "shop/mcp.py:7: shop.mcp.orders: the annotation [dict] of the return value is"
        " a value, not a type. Write list[dict].",
    ),
    "a value as a type": Broken(
        "@mcp.tool\ndef pay(amount: 5) -> str: ...",
        "shop/mcp.py:7: shop.mcp.pay: the annotation 5 of parameter amount is a value,"
        " not a type. Write int.",
    ),
    "an exception that nobody expects": Broken(
        "class Odd:\n    @property\n    def __wrapped__(self):\n        return 1 / 0\n"
        "    def __call__(self) -> str: ...\n    def __repr__(self): return 'Odd()'\n"
        "mcp.tool('odd')(Odd())",
        "shop/mcp.py:13: Odd() cannot be served: ZeroDivisionError: division by zero.",
    ),
    "a pattern that is none": Broken(
        "from typing import Annotated\nfrom pydantic import Field\n@mcp.tool\n"
        'def find(code: Annotated[str, Field(pattern="(")]) -> str: ...',
        'shop/mcp.py:9: shop.mcp.find: Error building "typed-dict" validator:'
        ' SchemaError: Field "code": SchemaError: Error building "str" validator:'
        " SchemaError: regex parse error: ( ^ error: unclosed group."
        " Correct its Field(…).",
    ),
    "an argument of a prompt that is a list": Broken(
        "@mcp.prompt\ndef letter(names: list[str]) -> str: ...",
        "shop/mcp.py:7: shop.mcp.letter: The argument names of a prompt arrives as a"
        " text, but its type cannot be read from a text. Write names: str.",
    ),
    "an async rule": Broken(
        '@mcp.rule("may")\nasync def may(request) -> bool: ...',
        "shop/mcp.py:7: shop.mcp.may: a rule runs in a thread. Write it with def, not"
        " async def.",
    ),
    "a syntax error": Broken(
        "def pay(:",
        "shop/mcp.py:7: the module shop.mcp stops with SyntaxError: invalid syntax."
        " Correct this line. Nothing of this module is served.",
        "",
    ),
    "an import of what is not there": Broken(
        "import shop.modles",
        "shop/mcp.py:7: the module shop.mcp stops with ModuleNotFoundError: No module"
        " named 'shop.modles'. Correct the import, or install what it names. Only what"
        " is declared above this line is served.",
        "before",
    ),
    "a name that is not there": Broken(
        "limit = LIMIT",
        "shop/mcp.py:7: the module shop.mcp stops with NameError: name 'LIMIT' is not"
        " defined. Import the name, or define it above this line. Only what is"
        " declared above this line is served.",
        "before",
    ),
    "an exception in a function that is called": Broken(
        "def limit() -> int:\n    return {}['limit']\nlimit()",
        "shop/mcp.py:9: the module shop.mcp stops with KeyError: 'limit' (raised at"
        " shop/mcp.py:8). Correct this line. Only what is declared above this line is"
        " served.",
        "before",
    ),
    "an exception in another module": Broken(
        "import shop.prices",
        "shop/mcp.py:7: the module shop.mcp stops with ZeroDivisionError: division by"
        " zero (raised at shop/prices.py:2). Correct this line. Only what is declared"
        " above this line is served.",
        "before",
    ),
    "a circular import": Broken(
        "from shop.views import page\ndef help() -> str: ...",
        "shop/mcp.py:7: the module shop.mcp stops with ImportError: cannot import name"
        " 'help' from partially initialized module 'shop.mcp' (most likely due to a"
        " circular import) (shop/mcp.py) (raised at shop/views.py:1). Import it inside"
        " the function that uses it. Only what is declared above this line is served.",
        "before",
    ),
}


def served(registry: Registry) -> set[str]:
    """Return what is served, with "/" between the parts of a key."""
    lists = (registry.tools, registry.prompts, registry.resources, registry.templates)
    keys = {key for each in lists for key in each}
    return keys | {"/".join(key) for key in registry.completers}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_mistake_is_one_sentence(discover: Discover, broken: Broken) -> None:
    others = {
        "prices": "def price(): ...\n1 / 0\n",
        "views": "from shop.mcp import help\n",
    }
    whole = "from mcp_app import mcp\n\n@mcp.prompt\ndef whole() -> str: ..."
    said, registry = discover(HEAD + broken.text + TAIL, whole, **others)
    assert said == [broken.sentence]
    assert served(registry) == {*broken.served.split(), "whole"}


@pytest.mark.parametrize(
    "text",
    [
        # Lint has advice on both.
        "@mcp.tool\ndef pay(amount) -> str: ...",
        "@mcp.tool\ndef pay(amount: int) -> str: ...",
        # Clients are told that they may leave it out, and no more.
        "@mcp.tool\ndef pay(amount: int = object()) -> str: ...",
        "mcp.tool('pay')(lambda: 1)",
    ],
)
def test_what_is_served_all_the_same(discover: Discover, text: str) -> None:
    said, registry = discover(HEAD + text + TAIL)
    assert said == []
    assert served(registry) == {"before", "pay", "after"}


def test_a_decorator_that_refuses_returns_its_function(discover: Discover) -> None:
    text = HEAD + (
        "@mcp.resource()\n@mcp.resource(5)\n@mcp.complete\n@mcp.function\n"
        "@mcp.rule('a', b=1)\n"
        "@mcp.tool('a', 'b')\n@mcp.prompt(titel='a')\ndef one(a: str) -> str:\n"
        "    return a\n\nassert one('x') == 'x'\n"
    )
    said, _ = discover(text + TAIL)
    lines = [each.partition(": ")[0] for each in said]
    assert lines == [f"shop/mcp.py:{line}" for line in range(7, 14)]


def test_one_name_in_two_modules(discover: Discover) -> None:
    other = "from mcp_app import mcp" + TAIL.replace("after", "before")
    [said], registry = discover(HEAD, other)
    assert said == (
        "shop/mcp.py:3: shop.mcp.before: the tool 'before' is already declared by"
        " shop.mcp.before (shop/mcp.py:3). Give one of the two another name."
    )
    assert served(registry) == {"before"}


def test_a_dotted_name(discover: Discover) -> None:
    said, registry = discover(HEAD + "1 / 0", name="api.mcp")
    assert [each.partition(": ")[0] for each in said] == ["shop/api/mcp.py:7"]
    assert served(registry) == {"before"}


def test_a_package_that_stops_around_a_dotted_name(discover: Discover) -> None:
    said, _ = discover(HEAD, name="api.mcp", **{"api.__init__": "\n1 / 0"})
    assert said == [
        "shop/api/__init__.py:2: the module shop.api.mcp stops with ZeroDivisionError:"
        " division by zero. Correct this line. Nothing of this module is served."
    ]


def test_apps_without_a_module(discover: Discover) -> None:
    assert discover("1 / 0", name="tools")[0]
    config = AppConfig("mcp_app", mcp_app)
    registry = Registry()
    import_modules(registry, [config], "no_such_module")
    assert registry_problems(registry) == []


def test_a_module_is_loaded_again(discover: Discover) -> None:
    said, registry = discover(HEAD + TAIL)
    first: Any = registry.tools["before"].function
    reload(sys.modules[first.function.__module__])
    again: Any = registry.tools["before"].function
    assert again.function is not first.function
    assert said == registry_problems(registry) == []


def test_problems_are_raised_again_afterwards(registry: Registry) -> None:
    import_modules(registry, [], "mcp")
    with pytest.raises(mcp_app.RegistrationError):
        registry.tool(lambda: 1)


# -- fingerprint -----------------------------------------------------------------------


PRINT: Final = """
import django
django.setup()
from mcp_app.catalog.autodiscovery import fingerprint
from mcp_app.catalog.registry import mcp
print(fingerprint(mcp))
"""


def declared(declare: Callable[[Registry], object]) -> str:
    registry = Registry()
    declare(registry)
    return fingerprint(registry)


def finder() -> Callable[[str], bool]:
    def find(text: str) -> bool:
        return text in {"a", "b"}

    return find


def other_finder() -> Callable[[str], bool]:
    def find(text: str) -> bool:
        return text in {"a", "c"}

    find.__qualname__ = finder().__qualname__
    return find


def one(registry: Registry) -> None:
    registry.tool("find")(finder())


def other_code(registry: Registry) -> None:
    registry.tool("find")(other_finder())


def other_title(registry: Registry) -> None:
    registry.tool("find", title="Find")(finder())


def function(registry: Registry) -> None:
    registry.function("find")(finder())


def test_it_is_the_same_for_the_same_code() -> None:
    assert declared(one) == declared(one)


@pytest.mark.parametrize("declare", [other_code, other_title, function])
def test_it_tells_code_apart(declare: Callable[[Registry], object]) -> None:
    assert declared(declare) != declared(one)


def test_what_is_no_function_counts_for_nothing() -> None:
    def bound(registry: Registry) -> None:
        one(registry)
        registry.bindings["shop://a"] = object()  # type: ignore[assignment]

    assert declared(bound) == declared(one)


def test_every_process_finds_the_same() -> None:
    found = set()
    for seed in ("1", "2"):
        inherited = {name: each for name, each in os.environ.items() if name not in OWN}
        settings = {"DJANGO_SETTINGS_MODULE": "tests.drill.settings"}
        done = subprocess.run(
            [sys.executable, "-c", PRINT],
            cwd=ROOT,
            env={**inherited, **settings, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1
