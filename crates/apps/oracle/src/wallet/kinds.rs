use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares an enumeration whose names are the same in JSON, CSV and messages.
macro_rules! names {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        pub enum $type {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl $type {
            /// All values, in order.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the name in files.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|one| one.name() == text).ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|one| one.name()).collect();
                    format!("{} is unknown: write one of {}", super::text::quoted(text, 40), known.join(", "))
                })
            }
        }
    };
}

names! {
    /// The purpose of a transaction.
    Category {
        /// Sends or receives coins.
        Transfer = "transfer",
        /// Exchanges one coin for another.
        Swap = "swap",
        /// Lends, borrows or repays.
        Lending = "lending",
        /// Stakes, unstakes or claims rewards.
        Staking = "staking",
        /// Adds liquidity to a pool, or removes it.
        Liquidity = "liquidity",
        /// Mints, buys, sells or lists NFTs.
        Nft = "nft",
        /// Moves value between chains.
        Bridge = "bridge",
        /// Votes, delegates or proposes.
        Governance = "governance",
        /// Claims an airdrop.
        Airdrop = "airdrop",
        /// Calls any other contract.
        Contract = "contract",
    }
}

names! {
    /// A risk of a transaction.
    RiskFlag {
        /// The value comes from a mixer, or goes to one.
        Mixer = "mixer",
        /// The counterparty is on a sanctions list.
        Sanctioned = "sanctioned",
        /// The counterparty is known for phishing.
        Phishing = "phishing",
        /// The value comes from an attack on a protocol.
        Exploit = "exploit",
        /// The makers of the coin disappeared with its value.
        RugPull = "rug_pull",
        /// The owner trades with themselves.
        WashTrading = "wash_trading",
        /// A position was liquidated.
        Liquidation = "liquidation",
        /// The source code of the contract is not verified.
        UnverifiedContract = "unverified_contract",
    }
}

names! {
    /// The experience that an owner claims.
    Experience {
        /// New to blockchains.
        Newcomer = "newcomer",
        /// Occasional use.
        Casual = "casual",
        /// Weekly use.
        Regular = "regular",
        /// Daily use for years.
        Expert = "expert",
    }
}

names! {
    /// The risk tolerance that an owner claims.
    RiskTolerance {
        /// Avoids all risks.
        Low = "low",
        /// Accepts some risks.
        Medium = "medium",
        /// Accepts any risk.
        High = "high",
    }
}
