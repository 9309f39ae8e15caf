import re
from importlib import resources

import httpx
import pytest

FILES = {
    entry.name: entry.read_text()
    for entry in resources.files("replicator.api").joinpath("console").iterdir()
}
SCRIPTS = {name: text for name, text in FILES.items() if name.endswith(".js")}


def test_every_file_of_the_console_is_served_with_its_type(reader_url):
    types = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg"}
    for name in FILES:
        path = "/" if name == "index.html" else f"/console/{name}"
        answer = httpx.get(reader_url + path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(types[name.rpartition(".")[2]])


@pytest.mark.parametrize("name", FILES)
def test_the_console_asks_no_other_server(name):
    addresses = set(re.findall(r"""(?:https?:)?//[\w.-]+\.\w+[^\s"'`]*""", FILES[name]))
    namespaces = {"http://www.w3.org/2000/svg"}
    assert addresses <= namespaces


def test_the_page_obeys_its_own_security_policy():
    page = FILES["index.html"]
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"\s(style|on\w+)=", page)
    for text in SCRIPTS.values():
        assert "innerHTML" not in text
        assert "insertAdjacentHTML" not in text
        assert "eval(" not in text
        assert 'setAttribute("style"' not in text


def test_what_the_page_refers_to_exists():
    page = FILES["index.html"]
    for path in re.findall(r'(?:src|href)="/console/([\w.]+)"', page):
        assert path in FILES
    for text in SCRIPTS.values():
        for module in re.findall(r'from "\./([\w.]+)"', text):
            assert module in FILES
    ids = set(re.findall(r'\bid="([\w-]+)"', page))
    wanted = set(re.findall(r'byId\("([\w-]+)"\)', FILES["console.js"]))
    assert wanted <= ids


def test_the_page_can_be_used_without_a_mouse_or_with_a_screen_reader():
    page = FILES["index.html"]
    assert '<html lang="en">' in page
    assert 'role="status"' in page
    assert 'class="skip"' in page
    assert "prefers-reduced-motion" in FILES["console.css"]
    assert "prefers-color-scheme: dark" in FILES["console.css"]
    assert ":focus-visible" in FILES["console.css"]
    assert "aria-expanded" in FILES["flows.js"]
