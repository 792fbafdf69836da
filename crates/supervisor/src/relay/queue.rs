//! Bytes that wait to be written, in order. Small pieces are joined, large ones are taken over without a copy.

use std::collections::VecDeque;

use super::split::Bytes;

/// Pieces are joined up to this many bytes.
const JOIN_UP_TO: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Queue {
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of the first chunk that are written.
    head: usize,
    len: usize,
    /// The last byte that ever came, written or not.
    last: Option<u8>,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether what came last is not the end of a line.
    pub(crate) fn is_mid_line(&self) -> bool {
        self.last.is_some_and(|byte| byte != b'\n')
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.len += bytes.len();
        self.last = bytes.last().copied();
        match self.chunks.back_mut() {
            Some(last) if last.len() + bytes.len() <= JOIN_UP_TO => last.extend_from_slice(bytes),
            _ => self.chunks.push_back(bytes.to_vec()),
        }
    }

    /// Without a copy where the bytes are owned and many.
    pub(crate) fn push_bytes(&mut self, bytes: Bytes<'_>) {
        match bytes {
            Bytes::Borrowed(bytes) => self.push(bytes),
            Bytes::Owned(bytes) => self.push_owned(bytes),
        }
    }

    pub(crate) fn push_owned(&mut self, bytes: Vec<u8>) {
        if bytes.len() < JOIN_UP_TO {
            self.push(&bytes);
        } else {
            self.len += bytes.len();
            self.last = bytes.last().copied();
            self.chunks.push_back(bytes);
        }
    }

    /// What is to be written next; empty only if nothing is.
    pub(crate) fn first(&self) -> &[u8] {
        self.chunks.front().map_or(&[], |chunk| &chunk[self.head..])
    }

    /// `written` bytes of [`Queue::first`] were written.
    pub(crate) fn advance(&mut self, written: usize) {
        self.head += written;
        self.len -= written;
        if self.chunks.front().is_some_and(|chunk| chunk.len() == self.head) {
            self.chunks.pop_front();
            self.head = 0;
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_line_is_known_also_when_it_is_written() {
        let mut queue = Queue::default();
        assert!(!queue.is_mid_line());
        queue.push(b"half");
        queue.advance(4);
        assert!(queue.is_empty() && queue.is_mid_line());
        queue.push_owned([b"x".repeat(JOIN_UP_TO), b"\n".to_vec()].concat());
        assert!(!queue.is_mid_line());
    }
}
