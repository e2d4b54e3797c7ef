"""The socket side: asyncio, h11 and h2 around the pure API."""
