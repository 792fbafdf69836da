//! A number for some bytes that is the same in every build and on every machine, which the standard hasher does not
//! promise. It tells things apart; it keeps nobody out.

/// FNV-1a, 64 bits.
#[must_use]
pub fn stable_hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::stable_hash;

    #[test]
    fn it_is_what_the_authors_of_the_function_say() {
        assert_eq!(stable_hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(stable_hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(stable_hash(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
