//! `formwork oracle import`: the export of a block explorer in, a wallet out.

use std::io;
use std::path::{Path, PathBuf};

use super::wallets;
use crate::exit::{Failed, Status};
use crate::{files, output};

const AFTER_HELP: &str = "\
Examples:
  formwork oracle import export-0xabc.csv > wallet.json
  formwork oracle import txlist.json --usd-per-coin 3450 > wallet.json
  curl \"$EXPLORER/api?module=account&action=txlist&address=$ADDRESS\" | formwork oracle import - --usd-per-coin 3450

It reads Etherscan's CSV files (transactions, and transfers of tokens) and the JSON that explorers answer to `txlist`; `score`,
`batch` and `serve` take the same files. The owner is the address that has a part in all transactions. Amounts become US
dollars by the prices of the export, else by --usd-per-coin. Methods become categories by their names, and known contracts
become protocols: correct both in the wallet where you know better.

Exit codes:
  0    the wallet is printed
  2    wrong usage, or a file that cannot be used";

/// Convert the export of a block explorer to a wallet
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The export: CSV or JSON; `-` is standard input
    export: PathBuf,
    /// The owner's address [default: the address that has a part in all transactions]
    #[arg(long)]
    address: Option<String>,
    /// The price of one coin of the chain in US dollars, for an export that has no prices
    #[arg(long, value_name = "DOLLARS", value_parser = price)]
    usd_per_coin: Option<f64>,
    /// The owner's survey, which becomes part of the wallet: a JSON document
    #[arg(long, value_name = "FILE")]
    survey: Option<PathBuf>,
}

fn price(text: &str) -> Result<f64, String> {
    let price = text.parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0);
    price.ok_or_else(|| "a price is a number of US dollars from 0, such as 3450.5".to_owned())
}

pub(super) fn run(args: &Args) -> Result<Status, Failed> {
    let survey = args.survey.as_deref();
    files::one_standard_input(&[args.export.as_path(), survey.unwrap_or(Path::new(""))])?;
    let mut reader = wallets::reader(&args.export, survey)?;
    if let Some(address) = &args.address {
        reader = reader.with_address(address);
    }
    if let Some(price) = args.usd_per_coin {
        reader = reader.with_price(price);
    }
    let wallet = wallets::one(&reader, &args.export)?;
    output::line(serde_json::to_string_pretty(&wallet).map_err(io::Error::from)?)?;
    Ok(Status::Ok)
}
