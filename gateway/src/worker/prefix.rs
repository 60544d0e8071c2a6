//! What may go before each metric's name.

/// Reads a prefix: what Prometheus takes as the beginning of a name.
///
/// # Errors
/// A text that says what one is.
pub fn parse_prefix(text: &str) -> Result<String, String> {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    let valid = text.starts_with(first) && text.chars().all(|c| first(c) || c.is_ascii_digit());
    if valid {
        Ok(text.to_owned())
    } else {
        Err("letters, digits, _ and :, with no digit first, such as my_worker_".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_name_and_nothing_else() {
        for good in [tidegate::metrics::PREFIX, "a", "_", ":", "a1:b_"] {
            assert_eq!(parse_prefix(good).as_deref(), Ok(good));
        }
        for bad in ["", " ", "1a", "a-b", "a b", "a{", "a\n", "\u{e9}_", " a"] {
            assert!(parse_prefix(bad).is_err(), "{bad:?}");
        }
    }
}
