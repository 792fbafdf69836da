//! Containers that a session started go with it: a per-session engine proxy, removal by label, the janitor. Knows no MCP.
