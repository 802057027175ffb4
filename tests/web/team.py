"""The page for a team, behind a real nginx with the configuration of docs/web.md, as two users and some who may not; tests/web/run calls it."""

import base64
import http.client
import json
import os
import pwd
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
from pathlib import Path

import lab as lab_module

ROOT = Path(__file__).resolve().parents[2]
HOST, PASSWORD, PROXY = "cosched.example.org", "open sesame", "www-data"
RUN = {"kind": "compare", "strategies": ["GS"], "workload": "WL3", "nodes": 8, "count": 5, "seeds": 1}


def missing():
    """What this machine lacks for it."""
    users = {user.pw_name for user in pwd.getpwall()}
    return [name for name in ("nginx", "openssl", "unshare") if shutil.which(name) is None] + [user for user in [PROXY] if user not in users]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Team:
    """`cosched web` for a team, its nginx, and their users: ann and bob, a system user svc, root, and ghost, whom this machine does not know."""

    def __init__(self, lab):
        self.lab, self.dir, self.port = lab, lab.dir / "team", free_port()
        self.dir.mkdir()
        self.dir.chmod(0o755)
        self.socket, self.origin = self.dir / "web.sock", f"https://{HOST}:{self.port}"
        passwd = self.dir / "passwd"
        own = [("ann", lab.a.uid, lab.a.home), ("bob", lab.b.uid, lab.b.home), ("svc", 998, "/")]
        passwd.write_text(Path("/etc/passwd").read_text() + "".join(f"{name}:x:{uid}:{uid}::{home}:/bin/sh\n" for name, uid, home in own))
        # Its own /etc/passwd: the machine's is not for tests.
        alone = ["unshare", "--mount", "sh", "-c", f'mount --bind {passwd} /etc/passwd && exec "$@"', "sh"]
        command = [lab.bin / "cosched", "web", "--json", "--listen", self.socket, "--origin", self.origin, "--proxy-user", PROXY]
        self.server = lab.root.popen([*alone, *command], stdout=subprocess.PIPE, text=True)
        assert json.loads(self.server.stdout.readline()) == {"socket": str(self.socket), "url": self.origin}
        self.start_nginx()

    def start_nginx(self):
        """With what docs/web.md says, at another port and in another directory."""
        config = re.search(r"```nginx\n(.*?)```", (ROOT / "docs/web.md").read_text(), re.S)[1]
        key, cert, users = self.dir / "key.pem", self.dir / "cert.pem", self.dir / "users"
        names = f"subjectAltName=DNS:{HOST},IP:127.0.0.1"
        make = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN={HOST} -keyout {key} -out {cert} -addext"
        subprocess.run([*make.split(), names], check=True, capture_output=True)
        hashed = subprocess.run(["openssl", "passwd", "-6", PASSWORD], check=True, capture_output=True, text=True).stdout
        users.write_text("".join(f"{name}:{hashed}" for name in ("ann", "bob", "svc", "root", "ghost")))
        for there, here in {
            "listen 443 ssl": f"listen 127.0.0.1:{self.port} ssl", "/etc/ssl/certs/cosched.pem": cert, "/etc/ssl/private/cosched.key": key,
            "/etc/nginx/cosched.users": users, "/run/cosched-web/web.sock": self.socket,
        }.items():
            assert config.count(there) == 1, there
            config = config.replace(there, str(here))
        temporary = "".join(f"{kind}_temp_path {self.dir}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        main = self.dir / "nginx.conf"
        main.write_text(f"user {PROXY}; worker_processes 1; daemon off; pid {self.dir}/pid; error_log {self.dir}/error.log;\n"
                        f"events {{}}\nhttp {{ access_log off; {temporary}\n{config}\n}}\n")
        self.lab.root.popen([shutil.which("nginx"), "-e", self.dir / "error.log", "-c", main])
        self.tls = ssl.create_default_context(cafile=cert)
        assert lab_module.wait_until(lambda: self.reaches()), (self.dir / "error.log").read_text()

    def reaches(self):
        try:
            return self.ask("ann")[0] == 200
        except ConnectionRefusedError:
            return False

    def fields(self, user, *more, password=PASSWORD):
        """What a browser sends."""
        known = base64.b64encode(f"{user}:{password}".encode()).decode()
        return [("Host", f"{HOST}:{self.port}"), *([("Authorization", f"Basic {known}")] if user else []), *more]

    def ask(self, user, method="GET", path="/", fields=None, body=None):
        """The status and the body of an answer through nginx. A change says where it comes from."""
        if fields is None:
            fields = self.fields(user, *([("Origin", self.origin)] if method != "GET" else []))
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20, context=self.tls)
        connection.putrequest(method, path, skip_host=True)
        for name, value in [*fields, *([("Content-Length", str(len(body)))] if body else [])]:
            connection.putheader(name, value)
        connection.endheaders(body.encode() if body else None)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def uid(self, user, *more):
        """As whom the daemon knows a user who sends these fields, too."""
        status, text = self.ask(user, path="/v1/limits", fields=self.fields(user, *more))
        assert status == 200, text
        return json.loads(text)["uid"]

    def direct(self, *fields, uid=None, method="GET", path="/v1/limits"):
        """A connection past nginx, as its user or as another one, with a request that has been sent."""
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(20)
        os.seteuid(pwd.getpwnam(PROXY).pw_uid if uid is None else uid)
        try:
            stream.connect(str(self.socket))
        finally:
            os.seteuid(0)
        head = [f"{method} {path} HTTP/1.1", f"Host: {HOST}:{self.port}", f"Origin: {self.origin}", *fields]
        stream.sendall("\r\n".join([*head, "", ""]).encode())
        return stream

    def told(self, *fields, **options):
        """The answer to such a request; empty if the connection is closed without one."""
        with self.direct(*fields, **options) as stream:
            parts = iter(lambda: stream.recv(65536), b"")
            return b"".join(parts).decode()


def worker(team, children, uid):
    """The process of a user."""
    (found,) = [pid for pid in children(team.server.pid) if f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n" in Path(f"/proc/{pid}/status").read_text()]
    return found


def check_users(team, job):
    """Each user has their own rights, whatever else they send; who is no user has none."""
    lab = team.lab
    assert team.ask("")[0] == team.ask("ann", fields=team.fields("ann", password="no"))[0] == 401
    assert (team.uid("ann"), team.uid("bob")) == (lab.a.uid, lab.b.uid)
    for forged in ([("X-Remote-User", "bob")], [("x-remote-USER", "bob")] * 2, [("X_Remote_User", "bob")]):
        assert team.uid("ann", *forged) == lab.a.uid, forged
    for user, why in (("root", "system user"), ("svc", "system user"), ("ghost", "has no user")):
        status, text = team.ask(user)
        assert status == 403 and why in text, text
    suspend, resume = f"/v1/jobs/{job}/suspend", f"/v1/jobs/{job}/resume"
    status, text = team.ask("bob", "POST", suspend, body="{}")
    assert status == 403 and json.loads(text)["code"] == "forbidden", text
    for wrong in ([], [("Origin", "https://evil.example")], [("Origin", team.origin), ("Sec-Fetch-Site", "cross-site")]):
        assert team.ask("ann", "POST", suspend, team.fields("ann", *wrong), "{}")[0] == 403, wrong
    rebound = [("Host", f"evil.example:{team.port}"), *team.fields("ann")[1:]]
    assert team.ask("ann", path="/v1/status", fields=rebound)[0] == 403
    assert lab.job(job)["state"] == "running", "what was refused was not done"
    assert team.ask("ann", "POST", suspend, body="{}")[0] == 200 and lab.job(job)["state"] == "suspended"
    assert team.ask("ann", "POST", resume, body="{}")[0] == 200
    print("   each user of a team has their own rights behind nginx, whatever headers they send")


def check_socket(team):
    """The header is taken from the proxy alone, once."""
    named = "X-Remote-User: ann"
    assert f'"uid":{team.lab.a.uid}' in team.told(named)
    for fields in ([], [named, named], [named, "X_Remote_User: bob"], ["X_Remote_User: ann"], ["X-Remote-User: "], ["X-Remote-User: 0"]):
        assert " 403 " in team.told(*fields).split("\n")[0], fields
    assert "for the reverse proxy alone" in team.told(named, uid=0)
    try:
        team.told(named, uid=team.lab.a.uid)
    except PermissionError:
        print("   its socket is the proxy's alone")
    else:
        raise AssertionError("another user of this machine has reached the socket")


def check_runs(team):
    """Simulations run as their user, who alone sees them; events arrive at once."""
    lab = team.lab
    status, text = team.ask("ann", "POST", "/ask/runs", body=json.dumps(RUN))
    assert status == 200, text
    run = json.loads(text)["id"]
    state = lambda: json.loads(team.ask("ann", path=f"/ask/runs/{run}")[1])["run"]["state"]
    assert lab_module.wait_until(lambda: state() == "done"), team.ask("ann", path=f"/ask/runs/{run}")
    assert team.ask("ann", path=f"/ask/reports/{run}")[0] == 200 and team.ask("bob", path=f"/ask/reports/{run}")[0] == 404
    assert json.loads(team.ask("bob", path="/ask/runs")[1]) == {"runs": []}
    kept = [path.stat() for path in (lab.a.home / ".local/state/cosched/web").rglob("*")]
    assert {found.st_uid for found in kept} == {lab.a.uid} and not any(found.st_mode & 0o077 for found in kept), kept
    with team.tls.wrap_socket(socket.create_connection(("127.0.0.1", team.port), 20), server_hostname=HOST) as stream:
        head = [f"{name}: {value}" for name, value in team.fields("bob")]
        stream.sendall("\r\n".join(["GET /v1/events?follow=true&after=0 HTTP/1.1", *head, "", ""]).encode())
        seen = b""
        while b"data: " not in seen:
            part = stream.recv(65536)
            assert part, seen
            seen += part
    print("   simulations are their user's, and events arrive")


def check_floods(team, children):
    """What one user does to the page, or to their own process, is no other user's."""
    lab, named, is_well = team.lab, "X-Remote-User: ann", lambda user: team.ask(user, path="/v1/status")[0] == 200
    ann = worker(team, children, lab.a.uid)
    status = Path(f"/proc/{ann}/status").read_text()
    assert re.search(r"NoNewPrivs:\t1\n", status) and re.search(r"CapPrm:\t0+\n", status), status
    assert re.search(rf"Gid:\t{lab.a.uid}\t{lab.a.uid}\t{lab.a.uid}\t{lab.a.uid}\n", status) and re.search(rf"Groups:\t{lab.a.uid} \n", status), status
    held = [team.direct(named, "Content-Length: 9", method="POST", path="/ask/runs") for _ in range(70)]
    assert lab_module.wait_until(lambda: team.told(named) == ""), "a user has 64 connections"
    assert is_well("bob")
    for stream in held:
        stream.close()
    assert lab_module.wait_until(lambda: is_well("ann"))
    os.kill(ann, signal.SIGSTOP)
    waiting, refused = [], False
    while not refused and len(waiting) < 900:
        waiting.append(team.direct(named))
        refused = any(b" 503 " in stream.recv(4096) for stream in select.select(waiting, [], [], 0)[0])
    # The page may be slower than this loop.
    refused = refused or lab_module.wait_until(lambda: any(b" 503 " in stream.recv(4096) for stream in select.select(waiting, [], [], 0)[0]))
    assert refused and is_well("bob"), len(waiting)
    os.kill(ann, signal.SIGKILL)
    assert lab_module.wait_until(lambda: is_well("ann")) and worker(team, children, lab.a.uid) != ann, "another process has taken its place"
    for stream in waiting:
        stream.close()
    print("   one user's flood, and a process that is stopped or killed, leave the others alone")


def check_words(team):
    """What cannot be safe is refused."""
    lab, known = team.lab, ["--origin", "https://x", "--proxy-user", PROXY]
    for user, words, code, why in (
        (lab.root, ["127.0.0.1:0", *known], 2, "every user of this machine"), (lab.root, ["0.0.0.0:443", *known], 2, "without TLS"),
        (lab.root, [team.dir / "x", "--origin", "http://x"], 2, "without TLS"), (lab.root, [team.dir / "x"], 2, "needs --origin"),
        (lab.root, [team.dir / "x", *known[:3], "root"], 2, "system user"), (lab.root, [lab.a.home / "x", *known], 1, "others than root"),
        (lab.root, [team.socket, *known], 1, "in use"), (lab.a, [team.dir / "x", *known], 5, "only root"),
    ):
        done = user.cosched("web", "--listen", *words)
        assert done.returncode == code and why in done.stderr, (words, done)


def check(lab, job, children, look):
    team = Team(lab)
    try:
        check_users(team, job)
        check_socket(team)
        check_runs(team)
        check_floods(team, children)
        check_words(team)
        look("team.mjs", team.origin, "ann", PASSWORD)
        last = children(team.server.pid)
        assert last
        team.server.kill()
        team.server.wait()
        assert lab_module.wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in last)), "users' processes end with it"
    except BaseException:
        print(f"--- nginx\n{(team.dir / 'error.log').read_text()[-3000:]}")
        raise
