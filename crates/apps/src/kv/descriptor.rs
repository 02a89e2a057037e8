//! The root of a store: how it is made, and how it is found again.
//!
//! ```text
//! word 0  a number that says that this is a store, and in which format
//! word 1  block size in bytes            word 4  base-2 logarithm of the buckets in a piece
//! word 2  salt                           word 5  pieces of the bucket array
//! word 3  buckets                        word 6  placement of records, and their homes
//! word 7  the address of the first piece, then those of the others
//! ```
//!
//! What must always hold: the root is complete before anyone learns its address, and never changes.

use std::sync::Arc;

use rackmem::{BlockSize, Discipline, GlobalAddr, Memory, NodeId};
use random::mix;

use super::bucket::Geometry;
use super::{Error, KvConfig, KvStore, Placement, homes};

/// "rackmkv" and the version of the format.
const FORMAT: u64 = u64::from_be_bytes(*b"rackmkv\x01");
const WORDS: usize = 7;
/// The array is allocated in pieces of up to so many bytes.
const LARGEST_PIECE: u64 = 4 << 20;
/// Each node gets about so many pieces, so that the array is spread evenly.
const PIECES_PER_NODE: u64 = 4;
/// More would need more memory than any rack has; an address read from memory that says so is no root.
const MOST_PIECES: u64 = 1 << 24;

impl KvStore {
    /// Makes an empty store.
    ///
    /// # Errors
    /// If there is no memory for it. What was allocated until then is given back.
    pub async fn create<M: Memory>(mem: &mut M, config: &KvConfig) -> Result<Self, Error> {
        let block = mem.block_size();
        let geometry = Geometry::of(block);
        let bucket = geometry.bytes() as u64;
        let buckets = config.expected_keys.div_ceil(geometry.slots().div_ceil(2) as u64);
        let buckets = buckets.clamp(1, MOST_PIECES * (LARGEST_PIECE / bucket));
        let nodes = homes(config.homes.unwrap_or(0), mem);
        let share = (buckets * bucket).div_ceil(u64::from(nodes) * PIECES_PER_NODE);
        let piece = share.next_power_of_two().clamp(block.bytes(), LARGEST_PIECE.max(block.bytes()));
        let count = buckets.div_ceil(piece / bucket);

        let mut pieces = Vec::new();
        match Self::allocate(mem, &mut pieces, nodes, (piece, count)).await {
            Ok(root) => {
                let store = Self {
                    root,
                    block,
                    geometry,
                    placement: config.placement,
                    homes: config.homes.unwrap_or(0),
                    salt: config.salt,
                    seal_key: seal_key(root, config.salt),
                    buckets,
                    piece_shift: (piece / bucket).ilog2(),
                    pieces: pieces.into(),
                };
                mem.write(root, &store.to_bytes()).await?;
                Ok(store)
            }
            Err(error) => {
                for piece in pieces {
                    mem.free(piece).await?;
                }
                Err(error)
            }
        }
    }

    /// Opens the store whose [root](KvStore::root) is at `root`.
    ///
    /// # Errors
    /// If there is none.
    pub async fn open<M: Memory>(mem: &mut M, root: GlobalAddr) -> Result<Self, Error> {
        let no_store = Error::NotAStore { root };
        let mut head = [0; WORDS * 8];
        mem.read(root, &mut head).await.map_err(|_| no_store)?;
        let [format, block, salt, buckets, piece_shift, count, placement] = words(&head);
        let block = BlockSize::new(block).filter(|block| *block == mem.block_size()).ok_or(no_store)?;
        let homes = u16::try_from(placement >> 8).map_err(|_| no_store)?;
        let placement = match placement & 0xff {
            0 => Placement::Spread,
            1 => Placement::Local,
            _ => return Err(no_store),
        };
        let piece_shift = u32::try_from(piece_shift).ok().filter(|shift| *shift < 32).ok_or(no_store)?;
        let fits = buckets > 0 && count <= MOST_PIECES && buckets.div_ceil(1 << piece_shift) == count;
        if format != FORMAT || !fits {
            return Err(no_store);
        }
        let mut bytes = vec![0; usize::try_from(count * 8).map_err(|_| no_store)?];
        mem.read(root + head.len() as u64, &mut bytes).await.map_err(|_| no_store)?;
        let pieces: Arc<[GlobalAddr]> =
            bytes.as_chunks().0.iter().map(|word| GlobalAddr::from_bits(u64::from_le_bytes(*word))).collect();
        Ok(Self {
            root,
            block,
            geometry: Geometry::of(block),
            placement,
            homes,
            salt,
            seal_key: seal_key(root, salt),
            buckets,
            piece_shift,
            pieces,
        })
    }

    /// What makes another store like this one: with as many buckets, on racks with such blocks.
    pub fn config(&self) -> KvConfig {
        KvConfig {
            expected_keys: self.buckets * self.geometry.slots().div_ceil(2) as u64,
            placement: self.placement,
            homes: Some(self.homes).filter(|homes| *homes > 0),
            salt: self.salt,
        }
    }

    /// Allocates the pieces of the bucket array, one node after the other, and then the root.
    async fn allocate<M: Memory>(
        mem: &mut M,
        pieces: &mut Vec<GlobalAddr>,
        nodes: u16,
        (piece, count): (u64, u64),
    ) -> Result<GlobalAddr, Error> {
        for node in (0..nodes).cycle().take(usize::try_from(count).expect("pieces are counted in memory")) {
            pieces.push(mem.alloc(piece, NodeId(node), Discipline::Coherent).await?);
        }
        let home = NodeId(mem.node().0 % nodes);
        Ok(mem.alloc(WORDS as u64 * 8 + count * 8, home, Discipline::Coherent).await?)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let placement = match self.placement {
            Placement::Spread => 0,
            Placement::Local => 1,
        };
        let count = self.pieces.len() as u64;
        let placement = placement | u64::from(self.homes) << 8;
        let head =
            [FORMAT, self.block.bytes(), self.salt, self.buckets, self.piece_shift.into(), count, placement];
        let pieces = self.pieces.iter().map(|piece| piece.bits());
        head.into_iter().chain(pieces).flat_map(u64::to_le_bytes).collect()
    }
}

/// What the store's seals are made with.
fn seal_key(root: GlobalAddr, salt: u64) -> u64 {
    mix(root.bits() ^ mix(salt ^ FORMAT))
}

fn words(bytes: &[u8; WORDS * 8]) -> [u64; WORDS] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| u64::from_le_bytes(words[at]))
}
