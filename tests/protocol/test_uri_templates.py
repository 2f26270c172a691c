from __future__ import annotations

from string import ascii_lowercase

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcp_app.protocol.uri_templates import URI_LENGTH, TemplateError, UriTemplate

Values = dict[str, str]

# A template, a URI, and its values; the URI is also what they expand to.
BOTH_WAYS: list[tuple[str, str, Values]] = [
    ("x://fixed", "x://fixed", {}),
    ("test://template/{id}/data", "test://template/123/data", {"id": "123"}),
    ("shop://orders/{id}", "shop://orders/a%20b", {"id": "a b"}),
    ("shop://orders/{id}", "shop://orders/a%2Fb", {"id": "a/b"}),
    ("shop://orders/{id}", "shop://orders/%C3%A9%F0%9F%98%80", {"id": "é😀"}),
    ("x://{a}/{b}", "x://1/2", {"a": "1", "b": "2"}),
    ("{scheme}://x", "abc://x", {"scheme": "abc"}),
    ("x:{a,b}", "x:1,2%2C3", {"a": "1", "b": "2,3"}),
    ("x:{lat}:{lon}", "x:1:2", {"lat": "1", "lon": "2"}),
    ("x://a{/b,c}", "x://a/1/2", {"b": "1", "c": "2"}),
    ("x://{name}.txt", "x://a.txt.txt", {"name": "a.txt"}),
    ("file:///{+path}", "file:///a/b.txt", {"path": "a/b.txt"}),
    ("file://{+path}", "file:///a/b", {"path": "/a/b"}),
    ("file:///{+path}/raw", "file:///a/raw/raw", {"path": "a/raw"}),
    ("file:///{+path}/{name}.txt", "file:///a/b/c.txt", {"path": "a/b", "name": "c"}),
    ("x://{host}/{+path}", "x://h/a/b", {"host": "h", "path": "a/b"}),
    ("x://a{#f}", "x://a#b/c?d", {"f": "b/c?d"}),
    ("x://{a}{?b,c}", "x://1?b=2&c=3", {"a": "1", "b": "2", "c": "3"}),
    ("x://{a}{?b,c}", "x://1?c=", {"a": "1", "c": ""}),
    ("x://{a}{?b,c}", "x://1", {"a": "1"}),
    ("x://{a}{?b}", "x://1?b=%26%3D%23..%2F", {"a": "1", "b": "&=#../"}),
    ("x://{+a}{?b}", "x://1/2?b=3", {"a": "1/2", "b": "3"}),
    ("x://a?f=1{&b}", "x://a?f=1&b=2", {"b": "2"}),
    ("x://a?f=1{&b}", "x://a?f=1", {}),
    ("x://a?f={f}&g=1{&b,c}", "x://a?f=x&g=1&c=2", {"f": "x", "c": "2"}),
    ("x://a?q={q}", "x://a?q=b%26c", {"q": "b&c"}),
    ("x://é/{a}", "x://%C3%A9/%C3%BC", {"a": "ü"}),
    ("x://{a.b}/{_c1}", "x://1/2", {"a.b": "1", "_c1": "2"}),
]

# Other URIs that a template matches.
ONE_WAY: list[tuple[str, str, Values]] = [
    ("x://{a}", "x://a:b@c,d", {"a": "a:b@c,d"}),
    *(("x://{a}", "x://é", {"a": "é"}), ("x://é/{a}", "x://é/1", {"a": "1"})),
    *(("x://{a}", "x://%41%2d", {"a": "A-"}), ("x://{a}", "x://...", {"a": "..."})),
    ("x://{a}", "x://a+b", {"a": "a+b"}),
    ("x://{a}&b/c", "x://1&2&b/c", {"a": "1&2"}),
    ("x:{a}:{b}", "x:1:2:3", {"a": "1", "b": "2:3"}),
    ("x://{a}{?b,c}", "x://1?c=3&b=2", {"a": "1", "b": "2", "c": "3"}),
    ("x://{a}{?b}", "x://1?b=a=b", {"a": "1", "b": "a=b"}),
    ("file:///{+path}", "file:///a%2Fb", {"path": "a/b"}),
]

NO_MATCH = {
    "x://fixed": ["x://fixed/", ""],
    "x://{a}": [
        *("x://", "X://1", "y://1", "x://1/2", "x://1?b=2", "x://1#b", "x://%zz"),
        *("x://%4", "x://%", "x://%ff", "x://%C0%AF", "x://\ud800", "x://a%00b"),
        *("x://a\0b", "x://..", "x://.", "x://%2e%2E", "x://..%2Fetc%2Fpasswd"),
        *("x://a%2F..%2F..%2Fb", "x://a%5C..%5Cb", "x://%2Fetc%2Fpasswd"),
        "x://%5Cserver",
    ],
    "x://{a}/c": ["x://1/d", "x:///c"],
    "x://{a}/{b}": ["x://1", "x://1/2/3"],
    "file:///{+path}": [
        *("file:///", "file:///../etc/passwd", "file:///a/%2e%2e/b", "file:///a/./b")
    ],
    "file:///{+path}/{name}": ["file:///a", "file:///a/.."],
    "x://{a}{?b}": [
        *("x://1?c=2", "x://1?b=1&b=2", "x://1?b", "x://1?", "x://1?b=%00"),
        *("x://1?b=1#f", "x://?b=1"),
    ],
    "x://a?f=1{&b}": ["x://a", "x://a?b=2&f=1", "x://a?f=12&b=2"],
    "x://a?q={q}": ["x://a?q=b&c=d"],
}

REFUSED = {
    "brace": ["x://{a", "x://a}", "x://{{a}}"],
    "'' is not a variable": ["x://{}", "x://{a,}", "x://{?}"],
    "'a b' is not a variable": ["x://{a b}"],
    "is not a variable": ["x://{é}"],
    "'a*' is not a variable": ["x://{a*}"],
    "'a:3' is not a variable": ["x://{a:3}"],
    "'.a' is not a variable": ["x://{.a}"],
    "';a' is not a variable": ["x://{;a}"],
    "'=a' is not a variable": ["x://{=a}"],
    "'a' is there twice": ["x://{a}/{a}", "x://{a}{?a}"],
    "'b' cannot be told apart": [
        *("x://{a}{b}", "x://{a}-{b}", "x://{a}.{b}", "x://{+a}{b}", "x://{+a}.{b}")
    ],
    "Use only one": ["x://{+a}/{+b}", "x://{+a,b}", "x://{+a}{#b}"],
    "{?a} is not the end": ["x://{?a}{?b}", "x://{?a}/b"],
    "{&a} is not the end": ["x://a?f=1{&a}{#b}"],
    "after a '?'": ["x://a{&b}"],
    "if there is no '?'": ["x://a?f=1{?b}"],
}


def test_a_uri_is_read() -> None:
    for template, uri, values in BOTH_WAYS + ONE_WAY:
        assert UriTemplate.parse(template).match(uri) == values, (template, uri)


def test_a_uri_is_made() -> None:
    for template, uri, values in BOTH_WAYS:
        parsed = UriTemplate.parse(template)
        assert parsed.expand(values) == uri, template
        assert parsed.text == template
        assert set(values) <= set(parsed.variables), template


def test_a_uri_of_another_form_is_none_of_the_templates() -> None:
    for template, uris in NO_MATCH.items():
        for uri in uris:
            assert UriTemplate.parse(template).match(uri) is None, (template, uri)


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_cannot_be_matched_is_refused(sentence: str) -> None:
    for template in REFUSED[sentence]:
        with pytest.raises(TemplateError) as caught:
            UriTemplate.parse(template)
        assert sentence in str(caught.value)
        assert repr(template) in str(caught.value)


def test_a_template_is_no_longer_than_a_uri() -> None:
    text = "x:{a}" + "y" * (URI_LENGTH - 5)
    assert UriTemplate.parse(text).text == text
    with pytest.raises(TemplateError, match="has 4097 characters; 4096 are allowed"):
        UriTemplate.parse(f"{text}y")


def test_the_first_of_many_names_that_stand_twice() -> None:
    names = [f"v{number}" for number in range(600)]
    with pytest.raises(TemplateError, match="'v100' is there twice"):
        UriTemplate.parse(f"x:{{{','.join((*names, 'v7', 'v100'))}}}")


def test_variables_are_in_the_templates_order() -> None:
    template = UriTemplate.parse("x://{b}/{+a}/{d}{?z,c}")
    assert template.variables == ("b", "a", "d", "z", "c")


# RFC 6570, sections 3.2.2 to 3.2.9, as far as the operators are taken.
RFC_VALUES = {
    "var": "value",
    "hello": "Hello World!",
    "half": "50%",
    "path": "/foo/bar",
    "x": "1024",
    "y": "768",
    "empty": "",
    "escaped": "a%20b",
}
RFC = [
    *(("{var}", "value"), ("{hello}", "Hello%20World%21"), ("{half}", "50%25")),
    *(("O{empty}X", "OX"), ("{x,y}", "1024,768")),
    ("{x,hello,y}", "1024,Hello%20World%21,768"),
    *(("{+hello}", "Hello%20World!"), ("{+half}", "50%25"), ("{+escaped}", "a%20b")),
    ("{+path}/here", "/foo/bar/here"),
    ("here?ref={+path}", "here?ref=/foo/bar"),
    *(("{#hello}", "#Hello%20World!"), ("{#path}", "#/foo/bar"), ("{/var}", "/value")),
    *(("{/var,x}/here", "/value/1024/here"), ("{?x,y}", "?x=1024&y=768")),
    *(("{?x,y,empty}", "?x=1024&y=768&empty="), ("{?x,undef}", "?x=1024")),
    ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
]


@pytest.mark.parametrize(("template", "uri"), RFC)
def test_expansion_is_that_of_rfc_6570(template: str, uri: str) -> None:
    assert UriTemplate.parse(template).expand(RFC_VALUES) == uri


def test_a_missing_value_of_the_path_is_named() -> None:
    with pytest.raises(ValueError, match="'b' has no value"):
        UriTemplate.parse("x://{a}/{b}").expand({"a": "1"})


def is_plain(value: str) -> bool:
    segments = value.replace("\\", "/").split("/")
    return bool(segments[0]) and not {".", ".."} & set(segments)


texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1
).filter(is_plain)
literals = st.text(f"{ascii_lowercase}0-._~", max_size=4)
separators = st.builds(
    lambda before, middle, after: before + middle + after,
    literals,
    st.sampled_from("/:,@!"),
    literals,
)


@given(st.data(), st.integers(1, 5))
def test_what_was_expanded_is_matched(data: st.DataObject, count: int) -> None:
    names = [f"v{index}" for index in range(count)]
    template = data.draw(literals)
    for name in names[:-1]:
        template += f"{{{name}}}" + data.draw(separators)
    template += f"{{{names[-1]}}}" + data.draw(literals) + "{?q,r}"
    values = {name: data.draw(texts) for name in names}
    values |= data.draw(st.fixed_dictionaries({}, optional={"q": texts, "r": texts}))
    parsed = UriTemplate.parse(template)
    assert parsed.match(parsed.expand(values)) == values


@given(texts, texts, texts)
def test_a_path_between_two_values_is_matched(left: str, path: str, right: str) -> None:
    # In a path an escape stays as it is, so "%41" would come back as "A".
    assume("%" not in path)
    template = UriTemplate.parse("x://{left}/{+path}/{right}.txt")
    values = {"left": left, "path": path, "right": right}
    assert template.match(template.expand(values)) == values


@given(st.text(), st.text())
def test_nothing_crashes(template: str, uri: str) -> None:
    try:
        parsed = UriTemplate.parse(template)
    except TemplateError:
        return
    parsed.match(uri)


@pytest.mark.parametrize(
    "template", ["x://{a}/{b}/{c}/{d}/z", "{+a}:{b}:{c}:z", "x{/a,b,c}", "x:{a,b,c}y"]
)
@pytest.mark.parametrize("text", ["/", ":", "a/", ",", "x://", "%2F", "y"])
def test_t13_long_uris_are_read_in_linear_time(template: str, text: str) -> None:
    # 4 MB: anything worse than linear would run for minutes.
    UriTemplate.parse(template).match("x://" + text * (4_000_000 // len(text)))


def test_names_of_the_path_are_required() -> None:
    template = UriTemplate.parse("shop://{id}/{+rest}{?page}")
    assert template.variables == ("id", "rest", "page")
    assert template.required_names == ("id", "rest")
