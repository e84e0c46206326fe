use formwork_ledger::{format_usd, parse_usd};
use proptest::prelude::*;

proptest! {
    #[test]
    fn what_is_formatted_reads_back_exactly(micro: u64) {
        prop_assert_eq!(parse_usd(&format_usd(micro)), Ok(micro));
    }
}

#[test]
fn amounts_are_read_exactly_or_not_at_all() {
    for (text, micro) in [
        ("5", 5_000_000),
        ("5.00", 5_000_000),
        ("$0.1", 100_000),
        ("0.000001", 1),
        ("0", 0),
        ("007.5", 7_500_000),
    ] {
        assert_eq!(parse_usd(text), Ok(micro), "{text}");
    }
    for text in [
        "",
        ".",
        "5.",
        ".5",
        "-1",
        "+1",
        "1e3",
        "1,5",
        "5 ",
        "0.0000001",
        "five",
        "$",
        "99999999999999999999",
        "١",
    ] {
        let error = parse_usd(text).unwrap_err().to_string();
        assert!(error.contains("US dollars"), "{text}: {error}");
    }
}
