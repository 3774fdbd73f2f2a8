/** Memory of kept output: of one tenant, and of all together. */
const MOST_OF_TENANT = 256 << 20;
const MOST_OF_ALL = 1 << 30;

/** Counts the memory of what processes printed by tenant, before it is taken. */
export class MemoryShares {
  readonly #ofTenant = new Map<string, number>();
  readonly #bounds: { readonly tenant: number; readonly all: number };
  #all = 0;

  constructor(bounds = { tenant: MOST_OF_TENANT, all: MOST_OF_ALL }) {
    this.#bounds = bounds;
  }

  /** Returns whose share is met; undefined where the bytes are taken. */
  take(tenant: string, bytes: number): 'tenant' | 'machine' | undefined {
    const own = (this.#ofTenant.get(tenant) ?? 0) + bytes;
    if (own > this.#bounds.tenant) return 'tenant';
    if (this.#all + bytes > this.#bounds.all) return 'machine';
    this.#ofTenant.set(tenant, own);
    this.#all += bytes;
    return undefined;
  }

  release(tenant: string, bytes: number): void {
    this.#all -= bytes;
    const own = (this.#ofTenant.get(tenant) ?? 0) - bytes;
    if (own > 0) this.#ofTenant.set(tenant, own);
    else this.#ofTenant.delete(tenant);
  }
}
