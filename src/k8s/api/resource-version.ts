/**
 * Resource versions are decimal numbers without leading zeros, of any length, and of one API server
 * comparable (Kubernetes 1.35: "Resource Version Semantics"). Below zero where `a` is older, above
 * where it is newer.
 */
export const compareVersions = (a: string, b: string): number =>
  a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
