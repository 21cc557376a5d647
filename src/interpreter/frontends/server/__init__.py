"""The server: sessions over HTTP and WebSocket, behind one gate; and the client, which needs none of its packages."""
