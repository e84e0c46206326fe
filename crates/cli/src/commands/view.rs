//! `formwork view`: the pages of a ledger, read-only.

use std::net::SocketAddr;
use std::path::PathBuf;

use formwork_gateway::Gateway;
use formwork_ledger::Ledger;
use tokio::runtime::Builder;

use crate::exit::{Failed, Status};
use crate::stderr::say;
use crate::{log, service, signals};

const AFTER_HELP: &str = "\
Examples:
  formwork view runs.db
  formwork view runs.db --listen 127.0.0.1:0 --contracts contracts

The pages are those of `formwork serve`, without login, forms and requests. Whoever reaches the address reads the ledger with its
texts, so it is one of this machine. The file is not changed.

Exit codes: 0 ended by a signal; 2 wrong usage, or a file that is no ledger or of another version.";

/// Show the runs of a ledger in a browser, read-only
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The ledger file
    ledger: PathBuf,
    /// The address to listen at, of this machine; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8191")]
    listen: SocketAddr,
    /// Folder of the named contracts, to show their schemas
    #[arg(long, value_name = "DIR")]
    contracts: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Status, Failed> {
    log::start(false);
    if !args.listen.ip().is_loopback() {
        return Err(Failed::usage("--listen: a view needs no key, so it listens at 127.0.0.1 or [::1] only"));
    }
    let ledger = Ledger::view(&args.ledger).map_err(|error| match args.ledger.exists() {
        true => Failed::usage(error),
        false => Failed::usage(format!("{error}: name a file that --ledger of another command has written")),
    })?;
    let listener = service::listen(args.listen)?;
    let address = listener.local_addr().map_err(Failed::usage)?;
    service::run(Builder::new_multi_thread(), async {
        let builder = Gateway::builder().with_ledger(ledger).as_view();
        let gateway = match &args.contracts {
            Some(contracts) => builder.with_contracts(contracts),
            None => builder,
        };
        say!("listening at http://{address}");
        gateway.build().serve(listener, signals::ended()).await.map_err(service::failed)
    })
}
