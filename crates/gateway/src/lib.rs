//! Sessions over HTTP: stdio servers for clients that speak Streamable HTTP or HTTP+SSE. Knows no argv and prints nothing.
