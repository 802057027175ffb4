"""How the client handles sockets and answers, with a fake daemon."""

import contextlib
import json
import os
import socket
import stat
import tempfile
import threading
import unittest
from unittest import mock

import cosched
from cosched import _api, _command, errors


@contextlib.contextmanager
def answering(content, hold=None):
    """A socket whose listener answers every request with `content`, or with its length alone and then nothing until `hold`."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = f"{folder}/s"
        listener.bind(path)
        listener.listen()
        asked = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    stream = listener.accept()[0]
                    with stream, contextlib.suppress(OSError):
                        asked.append(stream.recv(1 << 16))
                        stream.sendall(content)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield path, asked
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def answer(status, body, *headers):
    text = body if isinstance(body, str) else json.dumps(body)
    lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", f"Content-Length: {len(text)}", *headers, "", text]
    return "\r\n".join(lines).encode()


def refusal(code):
    return {"code": code, "what": "w", "why": "y", "hint": "h"}


class Client(unittest.TestCase):
    def test_a_request_says_what_it_is(self):
        with answering(answer(200, {"jobs": []})) as (path, asked):
            self.assertEqual(cosched.jobs(socket=path), [])
        lines = asked[0].decode().split("\r\n")
        self.assertEqual(lines[0], "GET /v1/jobs HTTP/1.1")
        self.assertIn(f"Cosched-Api: {_api.API_VERSION}", lines)

    def test_refusals_are_exceptions(self):
        kinds = {
            "invalid": errors.InvalidRequest, "not-found": errors.NotFound, "forbidden": errors.Forbidden,
            "conflict": errors.Conflict, "limit": errors.LimitReached, "unsupported": errors.Unsupported,
            "internal": errors.CoschedError, "of a later version": errors.CoschedError,
        }
        for code, kind in kinds.items():
            with answering(answer(403, refusal(code))) as (path, _), self.assertRaises(kind) as raised:
                cosched.status(socket=path)
            self.assertEqual(str(raised.exception), "w\n  why: y\n  hint: h")
            self.assertIs(type(raised.exception), kind)

    def test_another_version_is_told(self):
        with answering(answer(400, refusal("unsupported"), "Cosched-Api: 2.0")) as (path, _):
            with self.assertRaisesRegex(errors.VersionError, "version 2.0"):
                cosched.status(socket=path)

    def test_strange_answers(self):
        strange = [b"", b"ouch\r\n\r\n", answer(200, "{"), answer(500, "[]"), b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"]
        for content in strange:
            with answering(content) as (path, _), self.assertRaises((errors.ProtocolError, errors.NoDaemon)):
                cosched.status(socket=path)

    def test_an_endless_answer_is_cut(self):
        with mock.patch.object(_api, "ANSWER_BYTES_MAX", 1000), answering(answer(200, "x" * 2000)) as (path, _):
            with self.assertRaisesRegex(errors.ProtocolError, "longer than"):
                cosched.status(socket=path)

    def test_no_daemon_listens(self):
        with self.assertRaisesRegex(errors.NoDaemon, "does not exist"):
            cosched.status(socket="/nowhere/x")
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as dead:
            dead.bind(f"{folder}/s")
            with self.assertRaisesRegex(errors.NoDaemon, "no daemon listens"):
                cosched.status(socket=f"{folder}/s")


class Sockets(unittest.TestCase):
    def test_the_named_one_is_the_only_one(self):
        with mock.patch.dict(os.environ, {"COSCHED_SOCKET": "/e"}):
            self.assertEqual((_api.find_sockets("/n"), _api.find_sockets(None)), (["/n"], ["/e"]))

    def test_a_users_own_is_second(self):
        facts = mock.Mock(st_mode=stat.S_IFDIR | 0o700, st_uid=7)
        with mock.patch.dict(os.environ, {"COSCHED_SOCKET": "", "XDG_RUNTIME_DIR": "/run/user/7"}):
            with mock.patch("os.getuid", return_value=7), mock.patch("os.stat", return_value=facts):
                self.assertEqual(_api.find_sockets(None), [_api.SYSTEM_SOCKET, "/run/user/7/cosched/coschedd.sock"])
            with mock.patch("os.getuid", return_value=8), mock.patch("os.stat", return_value=facts):
                self.assertEqual(_api.find_sockets(None)[1], "/tmp/cosched-8/coschedd.sock")
            with mock.patch("os.getuid", return_value=0):
                self.assertEqual(_api.find_sockets(None), [_api.SYSTEM_SOCKET])
        for directory in (".", "/nonexistent"):
            with mock.patch.dict(os.environ, {"COSCHED_SOCKET": "", "XDG_RUNTIME_DIR": directory}):
                with mock.patch("os.getuid", return_value=7):
                    self.assertEqual(_api.find_sockets(None)[1], "/tmp/cosched-7/coschedd.sock")

    def test_a_folder_that_others_can_write_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            own = f"{folder}/own"
            os.mkdir(own)
            os.chmod(own, 0o777)
            with mock.patch.object(_api, "find_sockets", return_value=[f"{folder}/none", f"{own}/s"]):
                with self.assertRaisesRegex(errors.NoDaemon, "writable by other users"):
                    cosched.status()


class Command(unittest.TestCase):
    def test_where_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            program = f"{folder}/cosched"
            with open(program, "w") as file:
                file.write("#!/bin/sh\n")
            os.chmod(program, 0o755)
            without = {name: value for name, value in os.environ.items() if name != "COSCHED_COMMAND"}
            nowhere = mock.patch("sysconfig.get_path", return_value="/nowhere"), mock.patch("site.getuserbase", return_value="/nowhere")
            with nowhere[0], nowhere[1], mock.patch.dict(os.environ, without | {"PATH": folder}, clear=True):
                self.assertEqual(_command.find_command(), program)
                os.environ["COSCHED_COMMAND"] = "/named"
                with self.assertRaisesRegex(errors.CommandMissing, "/named"):
                    _command.find_command()
                os.environ["COSCHED_COMMAND"] = "/bin/true"
                self.assertEqual(_command.find_command(), "/bin/true")
                del os.environ["COSCHED_COMMAND"]
                os.environ["PATH"] = "/nowhere"
                with self.assertRaises(errors.CommandMissing):
                    _command.find_command()
                with mock.patch("sysconfig.get_path", return_value=folder):
                    self.assertEqual(_command.find_command(), program)


if __name__ == "__main__":
    unittest.main()
