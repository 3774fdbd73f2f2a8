/** When a candidate joins or leaves, only its own keys move. Undefined without candidates. */
export const rendezvous = (key: string, candidates: readonly string[]): string | undefined => {
  let best: string | undefined;
  let highest = -1;
  for (const candidate of candidates) {
    const weight = hashOf(`${candidate}/${key}`);
    if (weight > highest || (weight === highest && best !== undefined && candidate < best))
      [best, highest] = [candidate, weight];
  }
  return best;
};

/** FNV-1a of 32 bits, mixed, because names may differ only in their last letter. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
};
