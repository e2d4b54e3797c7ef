"""dyninformer with a handler of events that does not look at the old state."""

from __future__ import annotations

import sys

from benchmarks.measuring import Handler, run
from benchmarks.own_informer import CERTIFICATES, INDEXERS, Informer
from dyninformer import Event, EventType


class EventInformer(Informer):
    """What is not looked at is not decoded."""

    def sync(self, handler: Handler) -> None:
        """Sync all certificates."""

        def on_event(event: Event) -> None:
            if event.type is EventType.UPDATED:
                handler.on_update({}, event.object)

        certificates = self.factory.for_resource(CERTIFICATES, indexers=INDEXERS)
        certificates.informer.add_event_handler(on_event=on_event)
        self.factory.sync(timeout=600)
        self.lister = certificates.lister


if __name__ == "__main__":
    url, _, *numbers = sys.argv[1:]
    run(EventInformer(url), *map(int, numbers))
