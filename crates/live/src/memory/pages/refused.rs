//! Why there is no mapped memory, and what to do about it.

use std::{fmt, io};

use wire::BlockSize;

/// Why memory cannot be mapped in this process.
#[derive(Debug)]
pub enum Refused {
    /// Something has a part of the addresses.
    Taken {
        /// Where they begin.
        start: usize,
        /// How many there are.
        len: usize,
        /// What has them.
        by: String,
    },
    /// The system does not give that many addresses.
    NoAddresses {
        /// Where they were to begin; 0: anywhere.
        start: usize,
        /// How many there are.
        len: usize,
        /// What it says.
        why: io::Error,
    },
    /// No multiple of 1 GiB, or 0.
    Base {
        /// What was asked for.
        base: u64,
    },
    /// Blocks are smaller than pages, or pages of this machine have another size than the pages of racks.
    Blocks {
        /// Those of the rack.
        block: BlockSize,
        /// Bytes of a page of this machine.
        page: usize,
    },
    /// The kernel has no userfaultfd.
    NoUserfault,
    /// This process may not have one.
    NotPermitted(io::Error),
    /// It lacks something.
    Lacks(&'static str),
    /// Faults cannot be resolved in place on such a machine.
    InPlace,
    /// The file for the pages cannot be as large as the addresses.
    NoFile(io::Error),
    /// Something else that should not fail.
    Failed(io::Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { start, len, by } => write!(
                f,
                "the addresses {start:#x} to {:#x}, where the rack's memory lies in every process, are taken by {by}: map before it does, or let all processes of the rack map elsewhere (`map_base`)",
                start + len
            ),
            Self::NoAddresses { start, len, why } => write!(
                f,
                "the system gives no {} GiB of addresses at {start:#x} ({why}): raise the limit of this process's address space (`ulimit -v unlimited`)",
                len >> 30
            ),
            Self::Base { base } => {
                write!(
                    f,
                    "mapped memory cannot begin at {base:#x}: take a multiple of 1 GiB (0x40000000) that is not 0"
                )
            }
            Self::Blocks { block, page } if *page != super::PAGE => write!(
                f,
                "this machine has pages of {page} B, and mapped memory is made for pages of {} B (blocks of {block})",
                super::PAGE
            ),
            Self::Blocks { block, .. } => write!(
                f,
                "blocks of {block} are smaller than a page: give the rack blocks of 4 KiB to 1 MiB (`block` in the rack file)"
            ),
            Self::NoUserfault => {
                f.write_str("this kernel has no userfaultfd: it takes Linux 6.4 with CONFIG_USERFAULTFD")
            }
            Self::NotPermitted(why) => write!(
                f,
                "this process may not have a userfaultfd ({why}): make /dev/userfaultfd readable for it, or set `sysctl vm.unprivileged_userfaultfd=1`; in a container, take a seccomp profile that allows the system call userfaultfd"
            ),
            Self::Lacks(what) => write!(f, "the userfaultfd of this kernel lacks {what}"),
            Self::InPlace => f.write_str(
                "faults can be resolved in place (`faults_in_place`) on x86-64 alone: leave them to the node's thread",
            ),
            Self::NoFile(why) => write!(
                f,
                "the file for mapped pages cannot have its size ({why}): raise the limit of file sizes (`ulimit -f unlimited`); it takes memory only where pages are written"
            ),
            Self::Failed(why) => {
                write!(f, "the kernel refuses what mapped memory takes (userfaultfd): {why}")
            }
        }
    }
}

impl std::error::Error for Refused {}
