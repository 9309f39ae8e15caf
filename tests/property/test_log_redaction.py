import json
import time
import urllib.parse

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from replicator.redaction import MOST_VALUES, PLACEHOLDER, Redactor, is_secret_name

SECRETS = st.text(min_size=4, max_size=40).filter(
    lambda value: value.strip() == value and value not in PLACEHOLDER
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class Opaque:
    def __init__(self, inner):
        self.inner = inner

    def __repr__(self):
        return f"Opaque({self.inner!r})"


def bury(secret, depth, how):
    value = secret
    for step in how[:depth]:
        value = {
            "list": lambda inner: [1, inner],
            "tuple": lambda inner: (inner, 2),
            "field": lambda inner: {"field": inner},
            "text": lambda inner: f"before {inner} after",
            "bytes": lambda inner: str(inner).encode(),
            "object": Opaque,
            "error": ValueError,
        }[step](value)
    return value


@given(
    SECRETS,
    st.lists(st.sampled_from(["list", "tuple", "field", "text", "bytes", "object", "error"])),
    st.integers(0, 6),
)
def test_a_registered_value_never_survives_however_it_is_wrapped(secret, how, depth):
    redactor = Redactor()
    redactor.register(secret)
    # Text inside objects is escaped once by repr; escapes of escapes are not promised.
    assume(sum(step in {"object", "error", "bytes"} for step in how[:depth]) <= 1)
    shown = json.dumps(redactor.value(bury(secret, depth, how)), ensure_ascii=False)
    assert json.dumps(secret, ensure_ascii=False)[1:-1] not in shown.replace(PLACEHOLDER, "")


@given(SECRETS)
def test_escaped_forms_of_a_registered_value_go_too(secret):
    redactor = Redactor()
    redactor.register(secret)
    for form in (json.dumps(secret), repr(secret), urllib.parse.quote(secret, safe="")):
        assert redactor.text(f"x={form}.") in {
            f"x={PLACEHOLDER}.",
            f'x="{PLACEHOLDER}".',
            f"x='{PLACEHOLDER}'.",
        }


@given(VALUES)
def test_redacting_gives_plain_data_and_is_stable(value):
    redactor = Redactor()
    once = redactor.value(value)
    json.dumps(once)
    assert redactor.value(once) == once


@given(st.text(alphabet="abcdefgh .,:/-0123456789"))
def test_text_without_secrets_stays_as_it_is(text):
    assert Redactor().text(text) == text


@given(st.text(), st.text(), st.sampled_from(["PRIVATE KEY", "RSA PRIVATE KEY", "CERTIFICATE"]))
def test_pem_blocks_go_whole_even_when_cut_off(before, inside, kind):
    assume("-----" not in before + inside and "=" not in before + inside)
    begin, end = f"-----BEGIN {kind}-----", f"-----END {kind}-----"
    redactor = Redactor()
    assert redactor.text(f"{before}{begin}\n{inside}\n{end}") == f"{before}{PLACEHOLDER}"
    assert redactor.text(f"{before}{begin}\n{inside}") == f"{before}{PLACEHOLDER}"


@pytest.mark.parametrize(
    "name",
    [
        "password", "sasl.password", "ssl.key.password", "SASL_PASSWORD", "passwd", "clientSecret",
        "access_token", "ssl.key.pem", "keyPem", "private-key", "Authorization", "sasl.jaas.config",
    ],
)  # fmt: skip
def test_fields_named_like_secrets_are_replaced_whole(name):
    assert is_secret_name(name)
    assert Redactor().fields({name: {"a": "b"}}) == {name: PLACEHOLDER}


@pytest.mark.parametrize(
    "name", ["key", "topic", "partition", "event", "link", "keyPrefix", "user"]
)
def test_ordinary_fields_are_shown(name):
    assert Redactor().fields({name: "value"}) == {name: "value"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sasl.password=hunter2 next", f"sasl.password={PLACEHOLDER} next"),
        ('password="two words" next', f"password={PLACEHOLDER} next"),
        ("Bearer abcdefghijklmnopqrstuvwxyz", f"Bearer {PLACEHOLDER}"),
        ("the password of cluster east is missing", "the password of cluster east is missing"),
        ("bearer of news", "bearer of news"),
    ],
)
def test_assignments_in_text_lose_their_value(text, shown):
    assert Redactor().text(text) == shown


def test_an_empty_secret_redacts_nothing():
    redactor = Redactor()
    redactor.register("")
    redactor.register("   ")
    assert redactor.text("some text") == "some text"


def test_the_longer_of_two_secrets_goes_as_a_whole():
    redactor = Redactor()
    redactor.register("abcd")
    redactor.register("abcdefgh")
    assert redactor.text("x abcdefgh y") == f"x {PLACEHOLDER} y"


def test_a_secret_of_digits_is_found_as_a_number():
    redactor = Redactor()
    redactor.register("123456")
    assert redactor.fields({"value": 123456, "other": 7}) == {"value": PLACEHOLDER, "other": 7}


def test_very_short_secrets_do_not_shred_texts():
    redactor = Redactor()
    for value in ("a", "no", "abc", " xy "):
        redactor.register(value)
    assert redactor.text("a banana for no abc") == "a banana for no abc"
    assert redactor.fields({"password": "abc"}) == {"password": PLACEHOLDER}


def test_a_line_of_a_long_secret_is_found_alone():
    redactor = Redactor()
    redactor.register(
        "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\nAoIBAQC7VJTUt9Us8cKj\n-----END KEY-----\n"
    )
    assert redactor.text("bad line AoIBAQC7VJTUt9Us8cKj") == f"bad line {PLACEHOLDER}"


def test_the_register_is_bounded_and_keeps_what_was_read_last():
    redactor = Redactor()
    redactor.register("read-again-and-again")
    for number in range(2 * MOST_VALUES):
        redactor.register(f"secret-{number:06}")
        redactor.register("read-again-and-again")
    assert redactor.text("secret-000001") == "secret-000001"
    for kept in ("read-again-and-again", f"secret-{2 * MOST_VALUES - 1:06}"):
        assert redactor.text(kept) == PLACEHOLDER


def test_an_answer_keeps_names_numbers_and_form():
    redactor = Redactor()
    redactor.register("123456")
    answer = {"lag": 123456, "123456": None, "detail": ["it is 123456"]}
    assert redactor.answer(answer) == {**answer, "detail": [f"it is {PLACEHOLDER}"]}


ADVERSARIAL = [
    "a", "token", "token ", "token=", "token='", 'password="', "jaas.config\t", "bearer ",
    "bearer  a", "authorization: ", "authorization: basic ", "-----BEGIN ", "-----BEGIN A",
    "-----BEGIN A-----", "-----BEGIN A----------END ", "key_", "keypem", "private_", "passw", " ",
    "secret-0001", "secret-000", "\\", "=", ".", "-",
]  # fmt: skip


@pytest.mark.parametrize("unit", ADVERSARIAL)
@pytest.mark.parametrize("way", ["text", "name", "fields"])
def test_the_time_it_takes_is_linear_in_the_length(unit, way):
    redactor = Redactor()
    for number in range(100):
        redactor.register(f"secret-{number:04}")
    work = {
        "text": redactor.text,
        "name": is_secret_name,
        "fields": lambda text: redactor.fields({text: [text]}),
    }[way]

    def seconds(length):
        text = (unit * length)[:length]

        def once():
            began = time.process_time()
            work(text)
            return time.process_time() - began

        return min(once() for _ in range(5))

    # Eight times the length; quadratic would be 64 times.
    assert seconds(64_000) < 24 * max(seconds(8_000), 0.0005)
