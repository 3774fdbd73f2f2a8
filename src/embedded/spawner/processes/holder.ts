import { rmSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { join } from 'node:path';
import { AgentFrames } from '../../../contracts/agent/agent-frames.ts';
import { PieceReader } from '../../../contracts/agent/process-pieces.ts';
import { readProcess, tenantIn } from '../../../contracts/agent/process-record.ts';
import { Deferred } from '../../../lib/deferred.ts';
import { connectHolder } from './holder-socket.ts';

/** Output, and the positions at which streams change (native/processes.h). */
export const UNIT_BYTES = (64 << 10) + (8 << 10);
const UNIT = 64 << 10;
/** In one grant. */
const MOST_UNITS = 4;
/** In one holder. */
const ALL_UNITS = 17;
/** Without the first unit, which it has from its start. */
const BARE_BYTES = 128 << 10;
export const FIRST_BYTES = BARE_BYTES + UNIT_BYTES;

export interface HolderEvents {
  /** Returns false if the share is used up. */
  readonly take: (holder: Holder) => boolean;
  /** An adopted holder has this many units. */
  readonly found: (holder: Holder, units: number) => void;
  readonly ended: (holder: Holder) => void;
  /** Called once. `lost`: its process had not ended, and is gone too. */
  readonly gone: (holder: Holder, lost: boolean) => void;
}

export interface HolderPlace {
  readonly folder: string;
  readonly processId: string;
}

/** Grants a holder memory, and learns about the end of its process. */
export class Holder {
  readonly place: HolderPlace;
  readonly started: Promise<void>;
  tenant: string | undefined;
  /** Counted in the tenant's share. */
  bytes = 0;
  commandBytes = 0;
  isLive = true;
  endedAt = 0;
  readonly #socket: Duplex;
  readonly #events: HolderEvents;
  readonly #pieces = new PieceReader();
  readonly #started = new Deferred<void>();
  #isOrderly = false;
  #refusal = '';
  #isFound = false;
  #isListening = false;
  #isLeft = false;
  #hasBegun = false;

  constructor(place: HolderPlace, socket: Duplex, events: HolderEvents) {
    this.place = place;
    this.started = this.#started.promise;
    this.#socket = socket;
    this.#events = events;
    this.started.catch(() => {});
    const frames = new AgentFrames({
      greeted: () => {
        this.#isListening = true;
      },
      frame: (type, payload) => {
        this.#isOrderly = type === 'E' || type === 'X';
        if (type === 'X') this.#refusal = payload.toString('latin1').replace(/\0.*/s, '');
      },
      data: (bytes) => {
        try {
          this.#take(bytes);
        } catch {
          socket.destroy(); // a malformed piece
        }
      },
      rawEnded: () => {},
      malformed: () => socket.destroy(),
    });
    socket
      .on('data', (bytes) => frames.feed(bytes))
      .on('error', (error: NodeJS.ErrnoException) => {
        this.#isOrderly ||= error.code === 'ENOENT'; // it has just ended normally
      })
      .once('close', () => this.#closed());
  }

  static found(place: HolderPlace, events: HolderEvents): Holder {
    const socket = connectHolder(place.folder, place.processId);
    socket.write(requestOf('attend'));
    const holder = new Holder(place, socket, events);
    holder.#isFound = true;
    return holder;
  }

  forget(): void {
    try {
      const socket = connectHolder(this.place.folder, this.place.processId);
      socket
        .on('error', () => {})
        .on('end', () => socket.destroy())
        .resume()
        .write(requestOf('forget'));
    } catch {}
  }

  /** A stopped process in the sandbox may keep the other end open. */
  giveUp(): void {
    this.#socket.destroy();
  }

  leave(): void {
    this.#isLeft = true;
    this.#socket.destroy();
  }

  #take(bytes: Buffer): void {
    for (const piece of this.#pieces.push(bytes))
      if (piece.kind === 'record') this.#record(piece.record);
      else if (piece.kind === 'begins' && this.#isFound) this.#events.found(this, piece.at / UNIT);
      else if (piece.kind === 'wants') this.#grant(piece.at / UNIT);
  }

  #record(record: Buffer): void {
    const fact = readProcess(record);
    if (!fact) return;
    const isFirst = !this.#hasBegun;
    if (isFirst) {
      this.#hasBegun = true;
      this.tenant ??= tenantIn(record);
      this.commandBytes = record.length;
      this.#started.resolve();
    }
    if (fact.status === 'Running' || !this.isLive) return;
    this.isLive = false;
    this.endedAt = fact.endedAt ?? 0;
    if (!(isFirst && this.#isFound)) this.#events.ended(this);
  }

  #grant(had: number): void {
    let units = 0;
    while (units < Math.min(MOST_UNITS, ALL_UNITS - had) && this.#events.take(this)) units += 1;
    this.#socket.write(Buffer.of(units));
  }

  #closed(): void {
    this.#started.reject(new NotStarted(this.#refusal));
    if (this.#isLeft) return;
    // A killed holder leaves its socket. If it never listened, the socket is another's.
    if (this.#isListening || this.#isFound) this.#removeSocket();
    this.#events.gone(this, !this.#isOrderly && this.isLive && (this.#hasBegun || this.#isFound));
  }

  #removeSocket(): void {
    try {
      rmSync(join(this.place.folder, this.place.processId), { force: true });
    } catch {
      // It is removed with its folder when the sandbox is gone.
    }
  }
}

export class NotStarted extends Error {
  override readonly name = 'NotStarted';
  readonly refusal: string;

  constructor(refusal: string) {
    super(`the process was not started: ${refusal}`);
    this.refusal = refusal;
  }
}

const requestOf = (what: string): Buffer => {
  const request = Buffer.alloc(4 + what.length + 1);
  request.writeUInt32BE(what.length + 1);
  request.write(what, 4, 'latin1');
  return request;
};
