"""Fetching, from a server of our own that can misbehave."""

import base64
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rotating_features._check import InputError
from rotating_features.data import fetch as module
from rotating_features.data.crc32c import crc32c
from rotating_features.data.fetch import FILES, RemoteFile, fetch, missing

CONTENT = bytes(i * i % 251 for i in range(50_000))
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "a.tfrecords"
MNIST = Path(__file__).parents[3] / "shared" / "data" / "mnist"


class Server(ThreadingHTTPServer):
    """Answers by path; remembers where each answer began.

    ``/gone`` is not there, ``/other`` has other content, ``/plain`` knows no ranges, ``/drops``
    hangs up after 20,000 bytes, ``/short`` does so without knowing ranges.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, int]] = []
        self.hashes: list[str] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        path = self.path[1:]
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        start = 0 if path in ("plain", "short") else start
        self.server.asked.append((path, start))
        content = CONTENT[::-1] if path == "other" else CONTENT
        if path == "gone" or start >= len(content):
            self.send_error(404 if path == "gone" else 416)
            return
        self.send_response(206 if start else 200)
        for line in self.server.hashes:
            self.send_header("x-goog-hash", line)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        end = start + 20_000 if path in ("drops", "short") else len(content)
        self.wfile.write(content[start:end])

    def log_message(self, format: str, *args) -> None:  # noqa: A002 (the name its base has)
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def remote(server: Server, *paths: str, **facts) -> RemoteFile:
    return RemoteFile(name=NAME, urls=tuple(map(server.url, paths)), **facts)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_fetched_whole(server: Server, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "PIECE", 20_000)
    told = []
    file = remote(server, "good", size=len(CONTENT), sha256=SHA256)
    path = fetch(file, tmp_path / "new", lambda *now: told.append(now))
    assert path == tmp_path / "new" / NAME
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == [NAME]
    assert told == [(20_000, 50_000), (40_000, 50_000), (50_000, 50_000)]


def test_a_file_that_is_there_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(CONTENT)
    assert fetch(remote(server, "good", sha256=SHA256), tmp_path) == tmp_path / NAME
    assert server.asked == []


@pytest.mark.parametrize("facts", [{"size": 4}, {"sha256": SHA256}, {"md5": "0" * 32}])
def test_a_wrong_file_in_the_way_is_neither_used_nor_removed(server, tmp_path, facts) -> None:
    (tmp_path / NAME).write_bytes(b"notes")
    with pytest.raises(InputError, match=rf"{NAME} is not the file(.|\n)*Remove it"):
        fetch(remote(server, "good", **facts), tmp_path)
    assert (tmp_path / NAME).read_bytes() == b"notes"


def test_the_next_address_is_tried(server: Server, tmp_path: Path) -> None:
    file = remote(server, "gone", "other", "short", "good", sha256=SHA256)
    assert fetch(file, tmp_path).read_bytes() == CONTENT
    assert [path for path, _ in server.asked] == ["gone", "other", "short", "short", "good"]


def test_a_broken_connection_is_taken_up_where_it_broke(server: Server, tmp_path: Path) -> None:
    """The last byte is asked for again, so that there always is an answer."""
    file = remote(server, "drops", sha256=SHA256)
    assert fetch(file, tmp_path).read_bytes() == CONTENT
    assert server.asked == [("drops", 0), ("drops", 19_999), ("drops", 39_998)]


@pytest.mark.parametrize("have", [1, 2, 30_000, 49_999, 50_000])
def test_a_part_of_an_earlier_call_is_used(server: Server, tmp_path: Path, have: int) -> None:
    (tmp_path / f"{NAME}.partial").write_bytes(CONTENT[:have])
    fetch(remote(server, "good", sha256=SHA256), tmp_path)
    assert (tmp_path / NAME).read_bytes() == CONTENT
    assert server.asked == [("good", have - 1)]


def test_a_server_without_ranges_sends_all(server: Server, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.partial").write_bytes(CONTENT[:30_000])
    assert fetch(remote(server, "plain", sha256=SHA256), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("wrong", [b"x" * 30_000, b"x" * 90_000], ids=["shorter", "longer"])
def test_a_part_of_something_else_is_dropped(server: Server, tmp_path: Path, wrong) -> None:
    (tmp_path / f"{NAME}.partial").write_bytes(wrong)
    assert fetch(remote(server, "good", sha256=SHA256), tmp_path).read_bytes() == CONTENT
    assert server.asked[-1] == ("good", 0)


def test_a_file_cut_short_keeps_its_part_and_not_its_name(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ended after 20000 of 50000 bytes"):
        fetch(remote(server, "short"), tmp_path)
    assert names(tmp_path) == [f"{NAME}.partial"]


@pytest.mark.parametrize(
    ("facts", "told"), [({"sha256": SHA256}, "sha256"), ({"size": 49_999}, "50000 bytes instead")]
)
def test_a_wrong_file_is_not_kept(server: Server, tmp_path: Path, facts, told: str) -> None:
    with pytest.raises(InputError, match=told):
        fetch(remote(server, "other", **facts), tmp_path)
    assert names(tmp_path) == []


MD5 = base64.b64encode(hashlib.md5(CONTENT).digest()).decode()
CRC32C = base64.b64encode(crc32c(CONTENT).to_bytes(4, "big")).decode()
STATED = {
    "in one line": [f"crc32c={CRC32C},md5={MD5}"],
    "in two lines": [f"crc32c={CRC32C}", f"md5={MD5}"],
    "crc32c alone": [f"crc32c={CRC32C}"],
    "nothing": [],
}


@pytest.mark.parametrize("how", STATED)
def test_what_the_server_states_is_compared(server: Server, tmp_path: Path, how: str) -> None:
    server.hashes = STATED[how]
    assert fetch(remote(server, "drops"), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("how", list(STATED)[:3])
def test_a_file_unlike_what_the_server_states_is_refused(server, tmp_path, how: str) -> None:
    server.hashes = STATED[how]
    with pytest.raises(InputError, match=r"its (md5|crc32c) is \w+ instead of \w+"):
        fetch(remote(server, "other"), tmp_path)
    assert names(tmp_path) == []


def test_the_error_says_what_where_from_and_where_to(server: Server, tmp_path: Path) -> None:
    closed = "http://127.0.0.1:1/nobody"
    file = RemoteFile(name=NAME, urls=(server.url("gone"), closed), size=50_000, sha256=SHA256)
    with pytest.raises(InputError) as caught:
        fetch(file, tmp_path)
    told = str(caught.value)
    for fact in (
        f"{NAME} could not be had",
        f"{server.url('gone')}: the server answered 404",
        f"{closed}: no answer",
        f"as {tmp_path / NAME}",
        "50000 bytes",
        SHA256,
    ):
        assert fact in told


def test_trouble_with_the_disk_is_not_blamed_on_the_server(server, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.partial").mkdir()
    with pytest.raises(OSError, match="directory"):
        fetch(remote(server, "plain"), tmp_path)


def test_missing_files_are_told_with_the_command_that_gets_them(tmp_path: Path) -> None:
    here, *gone = FILES["mnist"]
    (tmp_path / here.name).touch()
    told = str(missing("MNIST", "mnist", tmp_path))
    assert f"rotating-features data mnist --fetch --out {tmp_path}" in told
    assert here.name not in told
    for file in gone:
        assert all(fact in told for fact in (file.name, *file.urls))


@pytest.mark.parametrize("name", FILES)
def test_every_known_file_has_an_address_that_ends_in_its_name(name: str) -> None:
    for file in FILES[name]:
        assert file.urls
        assert all(url.startswith("https://") and url.endswith(file.name) for url in file.urls)


@pytest.mark.skipif(not MNIST.is_dir(), reason="the files of MNIST are not here")
def test_the_checksums_of_mnist_are_those_of_the_files() -> None:
    for file in FILES["mnist"]:
        assert fetch(file, MNIST) == MNIST / file.name
