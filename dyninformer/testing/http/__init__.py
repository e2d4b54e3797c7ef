"""The socket side: asyncio and h11 around the pure API."""
