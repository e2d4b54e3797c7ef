"""A controller of which any number of replicas share the certificates among them."""

import logging
import os
import signal
from contextlib import suppress
from typing import Any

from dyninformer import LostShardError, ShardMembership


def look_at(certificate: dict[str, Any], membership: ShardMembership) -> None:
    """What there is to do about one certificate; here it is only shown."""
    try:
        # The shard stays ours as long as this lasts, unless the lease is lost.
        with membership.owned(certificate) as fence:
            fence.check()  # before each write
            name = certificate["metadata"]["name"]
            print(f"{name}: shard {fence.shard}, term {fence.term}", flush=True)
    except LostShardError:
        pass  # another replica has it now, and is told of it


def main() -> None:
    """Work until SIGTERM, or Ctrl-C, and hand over."""
    logging.basicConfig(level=os.environ.get("LOG_LEVEL", "INFO"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    with ShardMembership(
        name="certs", namespace=os.environ.get("NAMESPACE"), shards=64
    ) as membership:
        membership.run(
            "certificates.v1.cert-manager.io",
            on_add=lambda new: look_at(new, membership),
            on_update=lambda _, new: look_at(new, membership),
        )


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # that ends it
        main()
