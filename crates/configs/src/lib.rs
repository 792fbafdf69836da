//! Where MCP clients keep their servers: the files of every known client, and the entries in them. Reads; changes nothing by itself.
