//! `formwork oracle import`: converts the export of a block explorer to a wallet.

use std::io;
use std::path::{Path, PathBuf};

use formwork_oracle::wallet::Category;

use super::wallets;
use crate::exit::{Failed, Status};
use crate::flags::within;
use crate::stderr::say;
use crate::{files, output};

const AFTER_HELP: &str = "\
Examples:
  formwork oracle import export-0xabc.csv > wallet.json
  formwork oracle import txlist.json --usd-per-coin 3450 > wallet.json
  curl \"$EXPLORER/api?module=account&action=txlist&address=$ADDRESS\" | formwork oracle import - --usd-per-coin 3450

It reads the CSV files of Etherscan (transactions and token transfers) and the JSON response of explorers to `txlist`. `score`,
`batch` and `serve` accept the same files. The owner is the address that takes part in all transactions; with
--address, transactions without it are left out. The value of a failed transaction counts like that of others. Amounts are converted
to US dollars with the prices of the export, else with --usd-per-coin. The names of methods determine categories, and known
contracts determine protocols: correct both in the wallet if needed. The number of transactions with an unknown method is
printed on standard error.

Exit codes:
  0    the wallet is printed
  2    wrong usage, or an invalid file";

/// Convert the export of a block explorer to a wallet
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The export: CSV or JSON; `-` is standard input
    export: PathBuf,
    /// The address of the owner [default: the address that takes part in all transactions]
    #[arg(long)]
    address: Option<String>,
    /// The price of one coin of the chain in US dollars, for an export that has no prices
    #[arg(long, value_name = "DOLLARS", value_parser = price)]
    usd_per_coin: Option<f64>,
    /// The survey of the owner, which becomes part of the wallet: a JSON document
    #[arg(long, value_name = "FILE")]
    survey: Option<PathBuf>,
}

fn price(text: &str) -> Result<f64, String> {
    within(text, 0.0..=f64::MAX, "a price is a number of US dollars from 0, such as 3450.5")
}

pub(super) fn run(args: &Args) -> Result<Status, Failed> {
    let survey = args.survey.as_deref();
    files::one_standard_input(&[args.export.as_path(), survey.unwrap_or(Path::new(""))])?;
    let mut reader = wallets::reader(&args.export, survey)?;
    reader.address.clone_from(&args.address);
    reader.price = args.usd_per_coin;
    let wallet = wallets::one(&reader, &args.export)?;
    let (all, unknown) = (wallet.summary.transactions, wallet.summary.categories.get(&Category::Contract));
    if let Some(unknown) = unknown.filter(|unknown| **unknown > 0) {
        say!(
            "note: {}: the methods of {unknown} of {all} transactions are unknown, so they count as `{}`: correct their category \
             in the wallet",
            files::name(&args.export),
            Category::Contract
        );
    }
    output::line(serde_json::to_string_pretty(&wallet).map_err(io::Error::from)?)?;
    Ok(Status::Ok)
}
