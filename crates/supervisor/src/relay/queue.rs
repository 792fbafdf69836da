//! What waits to be written, in its order. Small pieces are put together, large ones are taken over without a copy.

use std::collections::VecDeque;

const TOGETHER: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Queue {
    chunks: VecDeque<Vec<u8>>,
    /// How much of the first one is written.
    head: usize,
    len: usize,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.len += bytes.len();
        match self.chunks.back_mut() {
            Some(last) if last.len() + bytes.len() <= TOGETHER => last.extend_from_slice(bytes),
            _ => self.chunks.push_back(bytes.to_vec()),
        }
    }

    pub(crate) fn push_owned(&mut self, bytes: Vec<u8>) {
        if bytes.len() < TOGETHER {
            self.push(&bytes);
        } else {
            self.len += bytes.len();
            self.chunks.push_back(bytes);
        }
    }

    /// What is to be written next; empty only if nothing is.
    pub(crate) fn first(&self) -> &[u8] {
        self.chunks.front().map_or(&[], |chunk| &chunk[self.head..])
    }

    /// So much of it was written.
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
