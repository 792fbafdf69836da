#!/bin/sh
# The smallest MCP server that the examples need: answers `initialize`, has one tool, one prompt and one resource, all of
# which say hello, and ends at EOF. The id is taken as it stands, so that a number stays a number.
hello='{"type":"text","text":"hello"}'
while read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},'\
'"serverInfo":{"name":"echo","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      result='{"tools":[{"name":"echo","description":"Says hello","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) result='{"content":['$hello'],"isError":false}' ;;
    *'"method":"prompts/list"'*) result='{"prompts":[{"name":"greet"}]}' ;;
    *'"method":"prompts/get"'*) result='{"messages":[{"role":"user","content":'$hello'}]}' ;;
    *'"method":"resources/list"'*) result='{"resources":[{"uri":"echo:hello","name":"hello"}]}' ;;
    *'"method":"resources/read"'*) result='{"contents":[{"uri":"echo:hello","text":"hello"}]}' ;;
    *'"method":"ping"'*) result='{}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
