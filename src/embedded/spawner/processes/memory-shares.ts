/** In bytes, of one tenant and of all. */
const MOST_OF_TENANT = 256 << 20;
const MOST_OF_ALL = 1 << 30;

export class MemoryShares {
  readonly #ofTenant = new Map<string, number>();
  readonly #bounds: { readonly tenant: number; readonly all: number };
  #all = 0;

  constructor(bounds = { tenant: MOST_OF_TENANT, all: MOST_OF_ALL }) {
    this.#bounds = bounds;
  }

  /** Returns whose share is used up. */
  take(tenant: string, bytes: number): 'tenant' | 'machine' | undefined {
    if ((this.#ofTenant.get(tenant) ?? 0) + bytes > this.#bounds.tenant) return 'tenant';
    if (this.#all + bytes > this.#bounds.all) return 'machine';
    this.count(tenant, bytes);
    return undefined;
  }

  /** Counts memory from a former spawner, even beyond the share. */
  count(tenant: string, bytes: number): void {
    this.#ofTenant.set(tenant, (this.#ofTenant.get(tenant) ?? 0) + bytes);
    this.#all += bytes;
  }

  release(tenant: string, bytes: number): void {
    this.#all -= bytes;
    const own = (this.#ofTenant.get(tenant) ?? 0) - bytes;
    if (own > 0) this.#ofTenant.set(tenant, own);
    else this.#ofTenant.delete(tenant);
  }
}
