"""OpenStack Swift with the API of S3, from Debian's packages, on loopback: a server that keeps its objects on disk.

`make buckets` installs it and runs the tests of buckets with it.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

from app.platform.buckets import Bucket
from app.platform.object_store import ObjectStore
from app.platform.settings import MIB
from tests.servers import _leash
from tests.waiting import eventually

PROGRAMS = ("swift-proxy-server", "swift-ring-builder", "memcached")
BACKENDS = ("account", "container", "object")
CREDENTIALS = """[default]
aws_access_key_id = test:tester
aws_secret_access_key = testing
"""
COMMON = """[swift-hash]
swift_hash_path_suffix = tests
swift_hash_path_prefix = tests
[storage-policy:0]
name = one
default = yes
"""
BACKEND = """[DEFAULT]
devices = {folder}/disks
mount_check = false
bind_ip = 127.0.0.1
bind_port = {port}
workers = 1
user = root
swift_dir = {folder}
disable_fallocate = true
[pipeline:main]
pipeline = {name}-server
[app:{name}-server]
use = egg:swift#{name}
"""
PROXY = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 1
user = root
swift_dir = {folder}
[pipeline:main]
pipeline = catch_errors cache listing_formats bulk s3api tempauth copy slo dlo versioned_writes proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{memcached}
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:versioned_writes]
use = egg:swift#versioned_writes
allow_versioned_writes = true
""" + "".join(
    f"[filter:{name}]\nuse = egg:swift#{name}\n"
    for name in ("catch_errors", "listing_formats", "bulk", "copy", "slo", "dlo")
)


def is_installed() -> bool:
    """Whether all programs of Swift are there."""
    return all(shutil.which(program) for program in PROGRAMS)


class SwiftServer:
    """Swift with the bucket `blobs`, which ends with this process. Needs root."""

    def __init__(self, folder: Path) -> None:
        (folder / "disks" / "d1").mkdir(parents=True)
        self.credentials = folder / "credentials"
        self.credentials.write_text(CREDENTIALS)
        (folder / "swift.conf").write_text(COMMON)
        ports = {name: _free_port() for name in (*BACKENDS, "proxy", "memcached")}
        self.url = f"http://127.0.0.1:{ports['proxy']}"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._log = (folder / "log").open("ab")
        self._start("memcached", "-u", "root", "-l", "127.0.0.1", "-p", str(ports["memcached"]))
        for name in BACKENDS:
            ring = ["swift-ring-builder", str(folder / f"{name}.builder")]
            device = f"r1z1-127.0.0.1:{ports[name]}/d1"
            for words in (["create", "4", "1", "0"], ["add", device, "1"], ["rebalance"]):
                # 1 is a warning: all parts are on one device.
                subprocess.run([*ring, *words], stdout=self._log, stderr=self._log, check=False)
            file = folder / f"{name}.conf"
            file.write_text(BACKEND.format(name=name, folder=folder, port=ports[name]))
            self._start(f"swift-{name}-server", str(file))
        proxy = PROXY.format(folder=folder, port=ports["proxy"], memcached=ports["memcached"])
        (folder / "proxy.conf").write_text(proxy)
        self._start("swift-proxy-server", str(folder / "proxy.conf"))
        eventually(self._create_bucket)

    def store(self, folder: Path, prefix: str = "/some/prefix") -> ObjectStore:
        """A store with a cache in a folder."""
        bucket = Bucket(f"s3://blobs{prefix}", self.url, self.credentials)
        return ObjectStore(
            bucket, folder, cache_bytes=64 * MIB, upload_bytes=80 * MIB, patience=10.0
        )

    def close(self) -> None:
        """End all processes."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()

    def _start(self, *words: str) -> None:
        self._processes.append(
            subprocess.Popen(
                words,
                stdout=self._log,
                stderr=self._log,
                preexec_fn=_leash(),  # noqa: PLW1509 - one system call, no lock of ours
            )
        )

    def _create_bucket(self) -> bool:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError

        client = boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id="test:tester",
            aws_secret_access_key="testing",
            region_name="us-east-1",
        )
        try:
            client.create_bucket(Bucket="blobs")
        except (BotoCoreError, ClientError):
            time.sleep(0.5)
            return False
        return True


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port
