//! When two JSON-RPC ids are the same id. Servers parse an id and write it again in their own way: `1.0` comes back as `1`,
//! `"\u00e9"` as `"é"`. So ids are compared by a key, which every way to write one value shares. Pure.
//!
//! Numbers are compared as exact decimals, never as floating point: above 2^53 two neighbours are still two ids.

/// An integer of up to this many digits is its own key.
const PLAIN_DIGITS: usize = 20;

/// What every way to write this id has in common, and no other id has. An id that is neither a string nor a number, or that is
/// malformed, is its own key.
#[must_use]
pub fn id_key(written: &[u8]) -> Vec<u8> {
    let key = match written {
        [b'"', inner @ .., b'"'] if inner.contains(&b'\\') => string_key(inner),
        [b'-' | b'0'..=b'9', ..] if !is_plain_integer(written) => number_key(written),
        _ => None,
    };
    key.unwrap_or_else(|| written.to_vec())
}

// === strings ===

/// The content without escapes, in quotes.
fn string_key(inner: &[u8]) -> Option<Vec<u8>> {
    let mut key = vec![b'"'];
    let mut rest = inner;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            key.push(*byte);
            continue;
        }
        let (escape, after) = rest.split_first()?;
        rest = after;
        match escape {
            b'"' | b'\\' | b'/' => key.push(*escape),
            b'b' => key.push(8),
            b'f' => key.push(12),
            b'n' => key.push(b'\n'),
            b'r' => key.push(b'\r'),
            b't' => key.push(b'\t'),
            b'u' => push_code_point(&mut key, code_point(&mut rest)?),
            _ => return None,
        }
    }
    key.push(b'"');
    Some(key)
}

/// What follows `\u`: four hex digits, or a pair of surrogates.
fn code_point(rest: &mut &[u8]) -> Option<u32> {
    let first = four_hex_digits(rest)?;
    let is_high = (0xd800..0xdc00).contains(&first);
    if let Some(mut after) = rest.strip_prefix(b"\\u").filter(|_| is_high)
        && let Some(second @ 0xdc00..0xe000) = four_hex_digits(&mut after)
    {
        *rest = after;
        return Some(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00));
    }
    Some(first)
}

fn four_hex_digits(rest: &mut &[u8]) -> Option<u32> {
    let (digits, after) = rest.split_at_checked(4)?;
    let value =
        digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))?;
    *rest = after;
    Some(value)
}

/// As UTF-8. A surrogate without its other half is no character: it is written in the same scheme, which no text has.
fn push_code_point(key: &mut Vec<u8>, code: u32) {
    if let Some(character) = char::from_u32(code) {
        return key.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    let [_, _, high, low] = code.to_be_bytes();
    key.extend([0xe0 | high >> 4, 0x80 | (high & 0xf) << 2 | low >> 6, 0x80 | low & 0x3f]);
}

// === numbers ===

fn is_plain_integer(written: &[u8]) -> bool {
    let digits = written.strip_prefix(b"-").unwrap_or(written);
    digits.len() <= PLAIN_DIGITS
        && digits.iter().all(u8::is_ascii_digit)
        && (digits[..] == *b"0" && digits.len() == written.len() || digits.first() != Some(&b'0'))
        && !digits.is_empty()
}

/// The digits without zeros around them and a power of ten; or the plain integer, where it is short.
fn number_key(written: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(written).ok()?;
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number =
        !whole.is_empty() && whole.bytes().chain(fraction.bytes()).all(|digit| digit.is_ascii_digit());
    let exponent =
        exponent.strip_prefix('+').unwrap_or(exponent).parse::<i64>().ok().filter(|_| is_number)?;
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        // Minus nought too: both JavaScript and Python write it as 0.
        return Some(b"0".to_vec());
    }
    let moved = i64::try_from(fraction.len()).ok()? - i64::try_from(digits.len() - significant.len()).ok()?;
    let power = exponent.checked_sub(moved)?;
    let significant = significant.trim_start_matches('0');
    let zeros = usize::try_from(power).unwrap_or(usize::MAX);
    if significant.len().saturating_add(zeros) <= PLAIN_DIGITS {
        return Some(format!("{sign}{significant}{}", "0".repeat(zeros)).into_bytes());
    }
    Some(format!("{sign}{significant}e{power}").into_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(written: &str) -> String {
        String::from_utf8_lossy(&id_key(written.as_bytes())).into_owned()
    }

    #[test]
    fn f12_an_id_that_was_parsed_and_written_again_is_the_same_id() {
        let pairs = [
            ("1.0", "1"),
            ("1e2", "100"),
            ("1E+2", "100"),
            ("100e-2", "1"),
            ("-0", "0"),
            ("0.0e7", "0"),
            ("-1.50", "-1.5"),
            (r#""\u00e9""#, "\"é\""),
            (r#""\u00E9""#, "\"é\""),
            (r#""a\/b""#, r#""a/b""#),
            (r#""\ud83d\ude00""#, "\"😀\""),
            (r#""\ud800""#, r#""\uD800""#),
            ("1e30", "1000000000000000000000000000000"),
        ];
        for (one, other) in pairs {
            assert_eq!(key(one), key(other), "{one} and {other}");
        }
    }

    #[test]
    fn f12_ids_that_differ_stay_apart() {
        let all = [
            "0",
            "1",
            "-1",
            "10",
            "0.1",
            "1e99",
            "1e-99",
            "-1e99",
            "9007199254740992",
            "9007199254740993",
            "12345678901234567890",
            "123456789012345678901",
            "123456789012345678902",
            "\"1\"",
            "\"1.0\"",
            "\"\"",
            "\"a\"",
            r#""\\""#,
            r#""\"""#,
            r#""\ud800""#,
            r#""\udc00""#,
            "\"\u{fffd}\"",
            "true",
            "null",
            "[1]",
            "[1.0]",
        ];
        let keys: std::collections::BTreeSet<_> = all.iter().map(|id| id_key(id.as_bytes())).collect();
        assert_eq!(keys.len(), all.len());
    }

    #[test]
    fn f12_what_is_no_id_is_its_own_key() {
        for odd in [
            r#""\q""#,
            r#""\u12""#,
            r#""\""#,
            "-",
            "--1",
            "1.x",
            "1e",
            "1e99999999999999999999",
            "{}",
            "\"",
            "",
        ] {
            assert_eq!(key(odd), odd);
        }
    }

    /// One way to write digits × 10^power.
    fn writing(
        negative: bool,
        digits: u128,
        power: i32,
        point: usize,
        zeros: usize,
        capital: bool,
    ) -> String {
        let mut text = format!("{digits}{}", "0".repeat(zeros));
        let fraction = point % text.len();
        text.insert(text.len() - fraction, '.');
        let text = text.strip_suffix('.').map(str::to_owned).unwrap_or(text);
        let exponent = i64::from(power) + i64::try_from(fraction).unwrap() - i64::try_from(zeros).unwrap();
        let (sign, e) = (if negative { "-" } else { "" }, if capital { "E+" } else { "e" });
        let e = if exponent < 0 { "e" } else { e };
        if exponent == 0 && capital { format!("{sign}{text}") } else { format!("{sign}{text}{e}{exponent}") }
    }

    fn escaped(text: &str, how: &[u8]) -> String {
        let mut units = [0; 2];
        let mut written = String::from("\"");
        for (index, character) in text.chars().enumerate() {
            match how.get(index % how.len().max(1)).map_or(0, |how| how % 3) {
                0 if !matches!(character, '"' | '\\') && character >= ' ' => written.push(character),
                1 if matches!(character, '"' | '\\' | '/') => written.extend(['\\', character]),
                2 => {
                    character.encode_utf16(&mut units).iter().for_each(|u| written += &format!("\\u{u:04X}"))
                }
                _ => {
                    character.encode_utf16(&mut units).iter().for_each(|u| written += &format!("\\u{u:04x}"))
                }
            }
        }
        written + "\""
    }

    proptest! {
        #[test]
        fn f12_all_writings_of_one_number_are_one_id_and_its_neighbour_is_another(
            negative: bool, digits in 1_u128..u128::MAX / 2, power in -40_i32..40,
            ways in prop::collection::vec((0_usize..50, 0_usize..30, any::<bool>()), 2..4),
        ) {
            let keys: Vec<_> = ways
                .iter()
                .map(|(point, zeros, capital)| key(&writing(negative, digits, power, *point, *zeros, *capital)))
                .collect();
            prop_assert!(keys.iter().all(|other| *other == keys[0]), "{keys:?}");
            prop_assert_ne!(&keys[0], &key(&writing(negative, digits + 1, power, 0, 0, false)));
            prop_assert_ne!(&keys[0], &key(&writing(!negative, digits, power, 0, 0, false)));
        }

        #[test]
        fn f12_integers_are_the_id_that_serde_reads(number: i64) {
            prop_assert_eq!(key(&number.to_string()), number.to_string());
            prop_assert_eq!(key(&format!("{number}.0")), number.to_string());
        }

        #[test]
        fn f12_all_writings_of_one_text_are_one_id(
            text in ".{0,12}", other in ".{0,12}", how in prop::collection::vec(any::<u8>(), 1..6),
        ) {
            let written = escaped(&text, &how);
            prop_assert_eq!(serde_json::from_str::<String>(&written).expect("a string"), text.clone());
            let plain = serde_json::to_string(&text).expect("a string");
            prop_assert_eq!(key(&written), key(&plain));
            prop_assert_eq!(key(&written) == key(&escaped(&other, &how)), text == other);
        }

        #[test]
        fn f12_no_bytes_make_it_panic(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b'\\'), Just(b'u'), Just(b'-'), Just(b'1'), Just(b'e')], 0..40)) {
            let _ = id_key(&bytes);
        }
    }
}
