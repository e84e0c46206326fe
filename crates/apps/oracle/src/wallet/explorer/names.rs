//! The meanings of method names and contract addresses.

use super::super::{Category, RiskFlag};

/// A contract that is known by its address.
#[derive(Debug)]
pub(super) struct Known {
    address: &'static str,
    pub(super) protocol: &'static str,
    pub(super) risk: Option<RiskFlag>,
}

const fn of(address: &'static str, protocol: &'static str) -> Known {
    Known { address, protocol, risk: None }
}

const fn mixer(address: &'static str) -> Known {
    Known { address, protocol: "Tornado Cash", risk: Some(RiskFlag::Mixer) }
}

/// The Ethereum contracts that many wallets use, in lower case.
const KNOWN: &[Known] = &[
    of("0x7a250d5630b4cf539739df2c5dacb4c659f2488d", "Uniswap"),
    of("0xe592427a0aece92de3edee1f18e0157c05861564", "Uniswap"),
    of("0x68b3465833fb72a70ecdf485e0e4c7bd8665fc45", "Uniswap"),
    of("0x3fc91a3afd70395cd496c647d5a6cc9d4b2b7fad", "Uniswap"),
    of("0x1111111254eeb25477b68fb85ed929f73a960582", "1inch"),
    of("0x7d2768de32b0b80b7a3454c06bdac94a69ddc7a9", "Aave"),
    of("0x87870bca3f3fd6335c3f4ce8392d69350b4fa4e2", "Aave"),
    of("0xae7ab96520de3a18e5e111b5eaab095312d7fe84", "Lido"),
    of("0x00000000000000adc04c56bf30ac9d3c0aaf14dc", "OpenSea"),
    of("0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2", "WETH"),
    mixer("0xd90e2f925da726b50c4ed8d0fb90ad053324f31b"),
    mixer("0x722122df12d4e14e13ac3b6895a86e84145b6967"),
    mixer("0x47ce0c6ed5b0ce3d3a51fdb1c52dc66a7c3c2936"),
    mixer("0x910cbd523d972eb0a6f4cae4618ad62622b39dbf"),
    mixer("0xa160cdab225685da1d56aa342ad8841c3b53f291"),
];

/// Returns the known contract at an address.
pub(super) fn known(address: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.address.eq_ignore_ascii_case(address))
}

/// Parts of method names, without spaces and in lower case. The first matching row decides, so specific rows precede
/// general ones.
const METHODS: &[(Category, &[&str])] = &[
    (Category::Airdrop, &["airdrop", "merkleproof"]),
    (Category::Governance, &["castvote", "vote", "propose", "delegate"]),
    (Category::Bridge, &["bridge", "crosschain", "outboundtransfer", "sendtol2"]),
    (Category::Liquidity, &["liquidity", "joinpool", "exitpool"]),
    (Category::Lending, &["borrow", "repay", "supply", "lend", "flashloan"]),
    (Category::Staking, &["stake", "staking", "claimreward", "getreward", "harvest"]),
    (
        Category::Nft,
        &["nft", "fulfill", "atomicmatch", "matchorders", "safetransferfrom", "setapprovalforall", "mint"],
    ),
    (Category::Swap, &["swap", "exactinput", "exactoutput", "trade", "exchange"]),
];

/// Returns the category of a method: `Transfer` and an absent method are transfers, an unknown method is a call of a
/// contract.
pub(super) fn category(method: &str) -> Category {
    let name: String =
        method.chars().filter(|letter| !letter.is_whitespace()).collect::<String>().to_lowercase();
    if name.is_empty() || name == "0x" || name.starts_with("transfer") {
        return Category::Transfer;
    }
    let found = METHODS.iter().find(|(_, parts)| parts.iter().any(|part| name.contains(part)));
    found.map_or(Category::Contract, |(category, _)| *category)
}
