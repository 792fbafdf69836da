#!/bin/sh
# The smallest MCP server that the examples need: answers `initialize`, lists and calls the one tool `echo`, ends at EOF.
# The id is taken as it stands, so that a number stays a number.
while read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      result='{"tools":[{"name":"echo","description":"Says hello","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) result='{"content":[{"type":"text","text":"hello"}],"isError":false}' ;;
    *'"method":"ping"'*) result='{}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
