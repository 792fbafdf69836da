//! A number for some bytes that is the same in every build and on every machine, which the standard hasher does not
//! promise. It tells things apart; it is no protection against forgery.

/// FNV-1a, 64 bits.
///
/// ```
/// assert_eq!(moored_launch::stable_hash(b"foobar"), 0x8594_4171_f739_67e8);
/// ```
#[must_use]
pub fn stable_hash(bytes: &[u8]) -> u64 {
    let mut hasher = StableHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// The same for bytes that come in pieces.
#[derive(Clone, Copy)]
pub(crate) struct StableHasher(u64);

impl Default for StableHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl StableHasher {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes
            .iter()
            .fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    }

    pub(crate) fn finish(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{StableHasher, stable_hash};

    #[test]
    fn it_is_what_the_authors_of_the_function_say() {
        assert_eq!(stable_hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(stable_hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(stable_hash(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn pieces_have_the_hash_of_the_whole() {
        let mut hasher = StableHasher::default();
        hasher.write(b"foo");
        hasher.write(b"bar");
        assert_eq!(hasher.finish(), stable_hash(b"foobar"));
    }
}
