//! The wallets of examples/wallets: each can be scored, and what is expected of it is what the rubric finds.

use std::fs;
use std::path::PathBuf;

use formwork_oracle::wallet::{Reader, Reference, Wallet};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/wallets")
}

fn files(inside: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder().join(inside)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|other| other == extension)).collect();
    files.sort();
    files
}

fn name(path: &std::path::Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

#[test]
fn each_wallet_is_within_the_band_that_a_person_gave_it() {
    let wallets: Vec<(String, Wallet)> = files("", "json")
        .iter()
        .map(|path| (name(path).to_owned(), Reader::new().file(path).unwrap()))
        .collect();
    assert!(wallets.len() >= 30, "{}", wallets.len());
    let mut off = Vec::new();
    for (name, wallet) in &wallets {
        let (reference, band) = (Reference::of(&wallet.features()), wallet.expected.unwrap());
        assert!(band.max - band.min <= 200, "{name}: a band of {band:?} says nothing");
        if !band.contains(reference.score()) {
            off.push(format!("{name}: {} by {reference:?}, expected {band:?}", reference.score()));
        }
    }
    assert!(off.is_empty(), "{}", off.join("\n"));
    let (low, high): (Vec<_>, Vec<_>) =
        wallets.iter().filter_map(|(_, wallet)| wallet.expected).partition(|band| band.middle() < 500);
    assert!(low.len() >= 10 && high.len() >= 10, "varied: {} and {}", low.len(), high.len());
}

#[test]
fn lists_of_transactions_are_the_summaries_beside_them() {
    let lists: Vec<PathBuf> = files("lists", "csv").into_iter().chain(files("lists", "json")).collect();
    assert!(lists.len() >= 4);
    for list in lists {
        let summary = folder().join(list.with_extension("json").file_name().unwrap());
        let mut wallet = Reader::new().file(&list).unwrap().summary;
        let same = Reader::new().file(&summary).unwrap().summary;
        // A list does not say what is left.
        wallet.balance_usd = same.balance_usd;
        assert_eq!(wallet, same, "{}", list.display());
    }
}
