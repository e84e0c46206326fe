//! In examples/wallets, lists and summaries describe the same wallets.

use std::fs;
use std::path::PathBuf;

use formwork_oracle::wallet::Reader;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../examples/wallets")
}

fn files(inside: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder().join(inside)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|other| other == extension)).collect();
    files.sort();
    files
}

#[test]
fn lists_of_transactions_are_the_summaries_beside_them() {
    let lists: Vec<PathBuf> = files("lists", "csv").into_iter().chain(files("lists", "json")).collect();
    assert!(lists.len() >= 4);
    for list in lists {
        let summary = folder().join(list.with_extension("json").file_name().unwrap());
        let mut wallet = Reader::new().file(&list).unwrap().summary;
        let same = Reader::new().file(&summary).unwrap().summary;
        wallet.balance_usd = same.balance_usd;
        assert_eq!(wallet, same, "{}", list.display());
    }
}
