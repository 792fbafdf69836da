//! Durations, sizes, switches and the like as people write them. Pure.

use std::time::Duration;

/// A duration: `500ms`, `2s`, `15m`, `1h`, `1h30m`, `2d`; `0` needs no unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const HOW: &str = "a duration is written like 500ms, 2s, 15m, 1h or 1h30m";
    let text = text.trim();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(HOW)?;
        let (number, after) = rest.split_at(digits);
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return Err(HOW.to_owned()),
        };
        let number: f64 = number.parse().map_err(|_| HOW)?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| HOW)?;
        // Rounded to what can be typed; without this 0.1s would not be 100ms.
        let part = Duration::from_micros(part.as_nanos().div_ceil(1000).try_into().map_err(|_| HOW)?);
        total = total.checked_add(part).ok_or(HOW)?;
        rest = after;
    }
    if text.is_empty() { Err(HOW.to_owned()) } else { Ok(total) }
}

/// A size in bytes: `65536`, `64k`, `10MB`, `1GiB`; all units count by 1024.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    const HOW: &str = "a size is written like 65536, 64k, 10MB or 1GiB";
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err(HOW.to_owned()),
    };
    let number: usize = number.parse().map_err(|_| HOW)?;
    number.checked_mul(1 << shift).filter(|size| *size > 0).ok_or_else(|| HOW.to_owned())
}

/// A switch.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" | "" => Ok(false),
        _ => Err("a switch is true or false".to_owned()),
    }
}

/// A number of instances; none for `off`.
pub(crate) fn count(text: &str) -> Result<Option<u32>, String> {
    match text.trim() {
        "off" => Ok(None),
        text => match text.parse() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err("expected a number from 1 on, or off".to_owned()),
        },
    }
}

/// A text that is not empty.
pub(crate) fn text(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        text => Ok(text.to_owned()),
    }
}

/// When a server is put to sleep, as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleText {
    /// When it is silent and has been replaced.
    Auto,
    /// Never.
    Off,
    /// After this much silence.
    After(Duration),
}

/// `auto`, `off`, or a duration.
pub(crate) fn idle(text: &str) -> Result<IdleText, String> {
    match text {
        "auto" => Ok(IdleText::Auto),
        "off" => Ok(IdleText::Off),
        text => match duration(text) {
            Ok(Duration::ZERO) => Err("expected more than no time; `off` means never".to_owned()),
            Ok(silence) => Ok(IdleText::After(silence)),
            Err(_) => Err("expected auto, off, or a duration like 500ms, 2s, 15m or 1h".to_owned()),
        },
    }
}

/// How long a server may live; none for `off`.
pub(crate) fn lifetime(text: &str) -> Result<Option<Duration>, String> {
    match text {
        "off" => Ok(None),
        text => match duration(text)? {
            Duration::ZERO => Err("expected more than no time; `off` means for ever".to_owned()),
            lifetime => Ok(Some(lifetime)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let millis = |text| duration(text).map(|duration| duration.as_millis());
        assert_eq!(millis("500ms"), Ok(500));
        assert_eq!(millis("2s"), Ok(2000));
        assert_eq!(millis("0.1s"), Ok(100));
        assert_eq!(millis("1.5h"), Ok(5_400_000));
        assert_eq!(millis("1h30m"), Ok(5_400_000));
        assert_eq!(millis("0"), Ok(0));
        for wrong in ["", "2", "s", "2 s", "-2s", "2x", "1e9h", "99999999999999999999h", "1.2.3s"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn sizes_count_by_1024() {
        assert_eq!(size("64k"), Ok(65536));
        assert_eq!(size("1MiB"), Ok(1 << 20));
        assert_eq!(size("512"), Ok(512));
        for wrong in ["", "k", "1.5M", "-1", "0", "99999999999999999999", "1T"] {
            assert!(size(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_count_is_at_least_one() {
        assert_eq!(count("3"), Ok(Some(3)));
        assert_eq!(count("off"), Ok(None));
        assert!(count("0").is_err());
        assert!(count("-1").is_err());
    }
}
