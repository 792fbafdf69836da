//! Keys: numbers that stand for a server or an entry of a client's config, in file names and in files that other builds
//! of moored read. How one is computed is written down here and never changes.

use std::ffi::OsStr;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::stable_hash::StableHasher;

/// A number that stands for a value that we do not want to write down whole. The same value has the same key in every
/// build and on every machine.
///
/// It is the FNV-1a hash, 64 bits, of the value's parts in order. A string is its length in bytes as eight bytes, the
/// lowest first, and then its bytes; a list is its length in the same form and then its strings; a map is its length
/// and then each name and value, sorted by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(u64);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Computes a [`Key`] part by part. Each part carries its length, so `["ab", "c"]` and `["a", "bc"]` differ.
#[derive(Default)]
pub(crate) struct KeyWriter(StableHasher);

impl KeyWriter {
    pub(crate) fn string(mut self, text: impl AsRef<OsStr>) -> Self {
        let bytes = text.as_ref().as_encoded_bytes();
        self = self.length(bytes.len());
        self.0.write(bytes);
        self
    }

    pub(crate) fn list(self, texts: &[impl AsRef<OsStr>]) -> Self {
        texts.iter().fold(self.length(texts.len()), Self::string)
    }

    /// The pairs must come sorted by name, as a `BTreeMap` has them.
    pub(crate) fn map<T: AsRef<OsStr>>(self, pairs: impl ExactSizeIterator<Item = (T, T)>) -> Self {
        let begun = self.length(pairs.len());
        pairs.fold(begun, |writer, (name, value)| writer.string(name).string(value))
    }

    pub(crate) fn key(self) -> Key {
        Key(self.0.finish())
    }

    fn length(mut self, length: usize) -> Self {
        self.0.write(&(length as u64).to_le_bytes());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_cut_elsewhere_have_other_keys() {
        let key = |parts: &[&str]| KeyWriter::default().list(parts).key();
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["a"]), key(&["a", ""]));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    }

    #[test]
    fn it_is_sixteen_hex_digits_for_people_and_a_number_for_programs() {
        assert_eq!(Key(0xbeef).to_string(), "000000000000beef");
    }
}
