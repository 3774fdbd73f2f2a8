import { Code, ConnectError } from '@connectrpc/connect';
import type { Clock } from '../../../../contracts/clock.ts';
import { Permits } from '../../../../lib/permits.ts';
import { tooManyFiles } from '../../../../model/file-refusals.ts';
import { tenantKey } from '../../../../model/tenant.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';
import { notFound, rpcErrorOf } from '../rpc/rpc-errors.ts';
import type { EventInit, Watch } from './watched-events.ts';

const MOST_OF_SANDBOX = 8;
const MOST_OF_TENANT = 32;
/** Bounds one watcher's buffered events; each counts EVENT_BYTES and its name. */
const MOST_BYTES = 1 << 20;
const EVENT_BYTES = 512;
/** A poll lasts at most FIRST_MS, and ends NEXT_MS after the last change. */
const FIRST_MS = 200;
const NEXT_MS = 30;
/** Unpolled watchers are removed then. */
const UNASKED_MS = 600_000;

interface Watcher {
  readonly sandboxId: string;
  readonly tenant: string;
  readonly leaving: AbortController;
  readonly close: () => void;
  readonly leave: () => void;
  events: EventInit[];
  bytes: number;
  failure?: ConnectError;
  wake: () => void;
  forget: () => void;
}

/** An ended watcher keeps its events until its permit is needed. */
export class Watchers {
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #permits = new Permits({ sandbox: MOST_OF_SANDBOX, tenant: MOST_OF_TENANT });
  readonly #all = new Map<string, Watcher>();

  constructor({ clock, newId }: { readonly clock: Clock; readonly newId: () => string }) {
    this.#clock = clock;
    this.#newId = newId;
  }

  async add({ sandboxId, caller }: AddressedSandbox, begin: () => Promise<Watch>): Promise<string> {
    const tenant = tenantKey(caller);
    const leave = this.#takePlace(sandboxId, tenant);
    try {
      const { events, close } = await begin();
      const id = this.#newId();
      const leaving = new AbortController();
      const watcher: Watcher = {
        ...{ sandboxId, tenant, leaving, close, leave, events: [], bytes: 0 },
        wake: () => {},
        forget: () => {},
      };
      this.#all.set(id, watcher);
      this.#rest(id, watcher);
      void this.#follow(watcher, events(leaving.signal));
      return id;
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Waits shortly for events in flight. Rejects with `not_found`, or the watcher's failure. */
  async take(sandbox: AddressedSandbox, id: string): Promise<EventInit[]> {
    const watcher = this.#find(sandbox, id);
    await this.#untilSettled(watcher);
    const { events, failure } = watcher;
    watcher.events = [];
    watcher.bytes = 0;
    if (events.length === 0 && failure) throw failure;
    this.#rest(id, watcher);
    return events;
  }

  remove(sandbox: AddressedSandbox, id: string): void {
    this.#drop(id, this.#find(sandbox, id));
  }

  async #untilSettled(watcher: Watcher): Promise<void> {
    const until = this.#clock.now() + FIRST_MS;
    for (let known = -1; watcher.failure === undefined && this.#clock.now() < until;) {
      const { length } = watcher.events;
      if (length === known) return;
      known = length === 0 ? -1 : length;
      const moment = length === 0 ? until : Math.min(until, this.#clock.now() + NEXT_MS);
      await new Promise<void>((resolve) => {
        const cancel = this.#clock.at(moment, resolve);
        watcher.wake = () => {
          if (length > 0 && !watcher.failure) return;
          cancel();
          resolve();
        };
      });
    }
  }

  #takePlace(sandbox: string, tenant: string): () => void {
    const keys = { sandbox, tenant };
    const isOf = {
      sandbox: (each: Watcher) => each.sandboxId === sandbox,
      tenant: (each: Watcher) => each.tenant === tenant,
    };
    for (let full = this.#permits.full(keys); full; full = this.#permits.full(keys))
      if (!this.#dropEnded(isOf[full.kind])) break;
    return this.#permits.take(keys, (kind, most) =>
      tooManyFiles(kind === 'sandbox' ? 'the sandbox has' : 'you have', most),
    );
  }

  #dropEnded(isOfIt: (watcher: Watcher) => boolean): boolean {
    for (const [id, watcher] of this.#all)
      if (watcher.failure !== undefined && isOfIt(watcher)) {
        this.#drop(id, watcher);
        return true;
      }
    return false;
  }

  stop(): void {
    for (const [id, watcher] of this.#all) this.#drop(id, watcher);
  }

  #find({ sandboxId }: AddressedSandbox, id: string): Watcher {
    const watcher = this.#all.get(id);
    if (watcher?.sandboxId !== sandboxId) throw notFound('there is no such watcher');
    return watcher;
  }

  /** Never rejects. */
  async #follow(watcher: Watcher, events: AsyncIterable<EventInit>): Promise<void> {
    try {
      for await (const event of events) {
        watcher.bytes += EVENT_BYTES + 4 * (event.name?.length ?? 0);
        if (watcher.bytes > MOST_BYTES)
          throw new ConnectError('too many changes were waiting; watch again', Code.Aborted);
        watcher.events.push(event);
        watcher.wake();
      }
      watcher.failure = notFound('the folder is gone');
    } catch (error) {
      watcher.failure =
        rpcErrorOf(error) ?? new ConnectError('it cannot be watched any longer', Code.Aborted);
    } finally {
      watcher.wake();
      watcher.close();
    }
  }

  #rest(id: string, watcher: Watcher): void {
    watcher.forget();
    watcher.forget = this.#clock.at(this.#clock.now() + UNASKED_MS, () => this.#drop(id, watcher));
  }

  #drop(id: string, watcher: Watcher): void {
    if (!this.#all.delete(id)) return;
    watcher.forget();
    watcher.leaving.abort();
    watcher.close();
    watcher.leave();
  }
}
