"""Which dialect an expression is in, what is wrong with it, and what it gives."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings

import pytest

from dyninformer import JSONPath, JSONPathError, JSONPathWarning
from dyninformer.jsonpath.path import ExpressionCache

READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


@pytest.mark.parametrize("spelling", ["spec.x", ".spec.x", "{.spec.x}", "{$.spec.x}", "$.spec.x"])
def test_every_spelling_finds_the_same(spelling: str) -> None:
    """A plain path means the same in braces, without them, and in the other dialect."""
    assert JSONPath(spelling).values({"spec": {"x": 1}}) == [1]


def test_a_dollar_at_the_start_makes_it_jsonpath_ngs() -> None:
    """An expression that starts with a dollar is read by jsonpath-ng."""
    assert JSONPath("$.a").dialect == "jsonpath-ng"
    assert JSONPath("{$.a}").dialect == "kubectl"


def test_a_dotted_key_is_one_key_in_one_dialect_and_two_in_the_other() -> None:
    """Dots in quoted keys are escaped in kubectl's dialect, and stand as they are elsewhere."""
    obj = {"labels": {"a.b/c": "whole", "a": {"b/c": "parts"}}}
    assert JSONPath(r".labels['a\.b/c']").values(obj) == ["whole"]
    assert JSONPath("$.labels['a.b/c']").values(obj) == ["whole"]
    with pytest.warns(JSONPathWarning):
        assert JSONPath(".labels['a.b/c']").values(obj) == ["parts"]


@pytest.mark.parametrize(
    ("expression", "column", "fix"),
    [
        ("{spec.x}", 2, "{.spec.x}"),
        ("{.spec.x", 1, "{.spec.x}"),
        (" spec.x", 2, ".spec.x"),
        ('.spec["x"]', 6, ".spec['x']"),
        (".spec[x]", 6, ".spec['x']"),
        (".labels[app.kubernetes.io/name]", 8, r".labels['app\.kubernetes\.io/name']"),
        (".spec.names[", 12, ".spec.names[*]"),
        ("{.spec.names[", 13, "{.spec.names[*]}"),
        (".a[?@.x=='b']", 3, ".a[?(@.x=='b')]"),
        (".a[?(@.x=='b'].c", 3, ".a[?(@.x=='b')].c"),
        ("{{.kind}}", 2, "{.kind}"),
        ("$kind", 2, "$.kind"),
    ],
)
def test_a_malformed_expression_says_what_was_meant(expression: str, column: int, fix: str) -> None:
    """The error names the column, puts a caret under it, and shows the likely fix."""
    with pytest.raises(JSONPathError) as caught:
        JSONPath(expression)
    lines = str(caught.value).splitlines()
    assert caught.value.column == column
    assert lines[1] == f"  {expression}"
    assert lines[2] == " " * (column + 1) + "^"
    assert lines[3] == f"did you mean {fix}?"
    JSONPath(fix)


@pytest.mark.parametrize(
    ("expression", "column"),
    [
        ("{.a}{.b[1.5]}", 8),
        ("{.a[?(@.b[x]==1)]}", 10),
        (".a['b','c',d]", 11),
        ("{.a['b\\'c']}", 4),
        ("x.y[?(@.a=='\\q')]", 12),
        ("{.a}{end}", 6),
        ("$.a[?(@.b]", 10),
        ("$.a|$.b", 4),
    ],
)
def test_the_column_is_that_of_the_expression_as_it_was_written(
    expression: str, column: int
) -> None:
    """Columns count in what the user wrote, inside filters, unions and relaxed spellings too."""
    with pytest.raises(JSONPathError) as caught:
        JSONPath(expression)
    assert caught.value.column == column


def test_logic_in_a_filter_names_the_dialect_that_has_it() -> None:
    """An expression with && is told where that can be said."""
    with pytest.raises(JSONPathError, match=r"start the expression with \$"):
        JSONPath(".a[?(@.b==1 && @.c==2)]")


def test_an_empty_expression_is_an_error() -> None:
    """Nothing is no path."""
    with pytest.raises(JSONPathError, match="empty"):
        JSONPath("")


def test_something_other_than_text_is_a_type_error() -> None:
    """A path is made of text."""
    with pytest.raises(TypeError, match="a path is 5: give text"):
        JSONPath(5)  # type: ignore[arg-type] # that is the point


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (".metadata.labels['app.kubernetes.io/name']", r"\['app\\.kubernetes\\.io/name'\]"),
        (".spec.names[]", r"\[\*\]"),
        (".a[?(@.b=1)]", "write =="),
        (".a[?(@.b==Ready)]", "Ready"),
        ("$.a[?(@.b==Ready)]", "Ready"),
        ("$.a[?(@.b==1 & @.c==2)]", "&&"),
    ],
)
def test_what_can_hardly_be_meant_warns(expression: str, said: str) -> None:
    """An expression that parses but means something else warns, at the line that wrote it."""
    with pytest.warns(JSONPathWarning, match=said) as caught:
        JSONPath(expression)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_relaxed_dollar_warns() -> None:
    """Where only kubectl's dialect is taken, a dollar finds nothing, and a warning says so."""
    with pytest.warns(JSONPathWarning, match="empty name") as caught:
        assert JSONPath.relaxed("$.a").values({"a": 1}) == []
    assert [warning.filename for warning in caught] == [__file__]


def test_evaluating_does_not_warn_again() -> None:
    """The warning comes when the path is made, and not with each object."""
    with pytest.warns(JSONPathWarning):
        path = JSONPath(".a[]")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert path.values({"a": [1]}) == [1]


@pytest.mark.parametrize(
    ("expression", "obj"),
    [
        (".a[3]", {"a": [1]}),
        (".a[0]", {"a": {}}),
        (".a[?(@.b==1)]", {"a": [{"b": "1"}]}),
        ("$.a.`sorted`", {"a": [1, "b"]}),
    ],
)
def test_a_path_that_does_not_fit_raises_and_has_no_first_value(
    expression: str, obj: object
) -> None:
    """``values`` says that a path failed; ``first`` gives the default."""
    path = JSONPath(expression)
    with pytest.raises(JSONPathError):
        path.values(obj)
    assert path.first(obj, default="none") == "none"


def test_an_error_does_not_show_the_object() -> None:
    """What is in the object stays out of the message: it may be a secret."""
    with pytest.raises(JSONPathError) as caught:
        JSONPath(".data[0]").values({"data": {"token": "hunter2"}})
    assert "hunter2" not in str(caught.value)


def test_bytes_that_are_not_json_are_refused_without_showing_them() -> None:
    """Malformed bytes are an error that names a place and nothing of the content."""
    with pytest.raises(JSONPathError, match="not JSON") as caught:
        JSONPath("{..a}").values(b'{"token": hunter2}')
    assert "hunter2" not in str(caught.value)


def test_a_null_is_a_first_value() -> None:
    """A null that is there is not replaced by the default."""
    assert JSONPath(".a").first({"a": None}, default=1) is None


def test_numbers_past_64_bits_are_floats_in_kubectls_dialect() -> None:
    """Go has no such whole number; jsonpath-ng does, and so does an object in Python."""
    raw = b'{"a": {"b": [98765432109876543210]}}'
    assert JSONPath(".a.b[0]").text(raw) == "9.876543210987654e+19"
    assert JSONPath(".a").values(raw) == [{"b": [9.876543210987654e19]}]
    assert JSONPath("$.a.b[0]").values(raw) == [98765432109876543210]


def test_a_number_out_of_range_is_read_all_the_same() -> None:
    """A number that msgspec refuses is read by the standard library."""
    assert JSONPath(".a").values(b'{"a": 1e999}') == [float("inf")]


def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    """Text that is no text is shown as Go shows it."""
    assert JSONPath(".a").text(b'{"a": "x\\ud800"}') == "x\ufffd"


def test_a_template_with_a_range_can_be_used_again() -> None:
    """Unlike client-go's, a range gives the same the second time."""
    path = JSONPath("{range .a[*]}{@}{' '}{end}")
    assert [path.text({"a": [1, 2]}) for _ in range(2)] == ["1 2 ", "1 2 "]


def test_paths_are_equal_by_text_and_reading() -> None:
    """Two paths of the same text are equal, unless it was read in another way."""
    assert JSONPath(".a") == JSONPath(".a")
    assert hash(JSONPath(".a")) == hash(JSONPath(".a"))
    assert JSONPath(".a") != JSONPath(".b")
    assert JSONPath.template("a") != JSONPath.relaxed("a")


def test_jsonpath_ng_is_not_imported_until_a_dollar_is_read() -> None:
    """Who only uses kubectl's dialect does not wait for the other's parser."""
    code = (
        "import sys; from dyninformer import JSONPath; JSONPath('.a').values({});"
        "assert 'jsonpath_ng' not in sys.modules;"
        "JSONPath('$.a'); assert 'jsonpath_ng' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_expression_is_parsed_once() -> None:
    """The same text gives the same parsed expression, and another reading another one."""
    assert JSONPath(".cached.once").parsed is JSONPath(".cached.once").parsed
    strict = JSONPath(".cached.once", allow_missing_keys=False)
    assert strict.parsed is not JSONPath(".cached.once").parsed


def test_the_oldest_expressions_are_forgotten() -> None:
    """The cache does not grow with the number of expressions ever seen."""
    cache = ExpressionCache()
    parsed: list[str] = []

    def parse(text: str, flag: bool) -> str:
        parsed.append(text)
        return f"{text} {flag}"

    for number in range(5000):
        cache.get(parse, str(number))
    assert cache.get(parse, "4999") == "4999 True"
    assert parsed.count("4999") == 1
    assert cache.get(parse, "0") == "0 True"
    assert parsed.count("0") == 2


def test_threads_that_meet_in_the_cache_all_get_answers() -> None:
    """Many threads over more expressions than fit get each its own, right answer."""
    wrong: list[str] = []
    start = threading.Barrier(8)

    def work(seed: int) -> None:
        start.wait()
        for number in range(400):
            key = f"k{(number * 7 + seed) % 50}"
            dialect = "$" if number % 5 == 0 else ""
            if JSONPath(f"{dialect}.a.{key}").values(b'{"a": {"%s": 1}}' % key.encode()) != [1]:
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
