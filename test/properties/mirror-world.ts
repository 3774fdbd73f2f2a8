import fc from 'fast-check';
import { Mirror } from '../../src/model/mirror/mirror.ts';
import type { MirrorChange, MirrorList, Version } from '../../src/model/mirror/mirror-terms.ts';

/** Identifies an object and its age. */
export interface Kept {
  readonly uid: string;
  readonly revision: number;
  readonly isLabelled: boolean;
}

export type MirrorStep = readonly [
  (
    | 'create'
    | 'write'
    | 'remove'
    | 'unlabel'
    | 'label' // by others
    | 'begin read'
    | 'read'
    | 'answer read' // the store answers between the two
    | 'create here'
    | 'write here'
    | 'remove here'
    | 'answer write'
    | 'hear'
    | 'bookmark'
    | 'cut'
    | 'list'
    | 'page'
    | 'look'
  ),
  number,
];

export const mirrorSteps: fc.Arbitrary<readonly MirrorStep[]> = fc.array(
  fc.oneof(
    ...(
      [
        ['create', 3],
        ['write', 2],
        ['remove', 3],
        ['unlabel', 1],
        ['label', 1],
        ['begin read', 3],
        ['read', 3],
        ['answer read', 3],
        ['create here', 2],
        ['write here', 2],
        ['remove here', 2],
        ['answer write', 4],
        ['hear', 8],
        ['bookmark', 1],
        ['cut', 1],
        ['list', 2],
        ['page', 4],
        ['look', 1],
      ] as const
    ).map(([what, weight]) => ({
      weight,
      arbitrary: fc.tuple(fc.constant(what), fc.nat({ max: 5 })),
    })),
  ),
  { minLength: 1, maxLength: 60 },
);

interface Told {
  readonly type: 'put' | 'gone';
  readonly version: Version<Kept>;
}
interface Reading {
  readonly name: string;
  readonly found: (version: Version<Kept> | undefined) => void;
  seen?: { readonly version: Version<Kept> | undefined };
}

const NAMES = ['a', 'b'];
const PAGE = 1;

export class MirrorWorld {
  readonly mirror: Mirror<Kept>;
  /** In order. */
  readonly shown: MirrorChange<Kept>[] = [];
  /** Marked as doubted. */
  readonly doubts = new Set<string>();
  readonly #objects = new Map<string, Version<Kept>>();
  readonly #log: Told[] = [];
  readonly #readings: Reading[] = [];
  readonly #answers: (() => void)[] = [];
  #revision = 0;
  #uids = 0;
  /** Undefined without a watch. */
  #watchedTo: number | undefined;
  #listing:
    | {
        readonly list: MirrorList<Kept>;
        readonly items: Version<Kept>[];
        readonly revision: number;
      }
    | undefined;

  constructor(labels: boolean) {
    this.mirror = new Mirror<Kept>({
      report: (change) => {
        this.shown.push(change);
      },
      ...(labels ? { mayStand: () => true, isWatched: ({ isLabelled }: Kept) => isLabelled } : {}),
    });
    this.#labels = labels;
    this.mirror.onDoubt((key) => {
      this.doubts.add(key);
    });
  }

  readonly #labels: boolean;

  take([what, n]: MirrorStep): void {
    const name = NAMES[n % NAMES.length] ?? '';
    const known = this.#objects.get(name);
    switch (what) {
      case 'create':
        if (!known) this.#write(name, `u${(this.#uids += 1)}`, true);
        break;
      case 'write':
        if (known) this.#write(name, known.uid, known.record?.isLabelled ?? true);
        break;
      case 'remove':
        if (known) this.#remove(known);
        break;
      case 'unlabel':
        if (known && this.#labels) this.#write(name, known.uid, false);
        break;
      case 'label':
        if (known) this.#write(name, known.uid, true);
        break;
      case 'begin read':
        this.#readings.push({ name, found: this.mirror.read(name) });
        break;
      case 'read':
        this.#serveReads(n, 1);
        break;
      case 'answer read':
        this.#answerRead(n);
        break;
      case 'create here':
        if (!known) this.#learnLater(this.#write(name, `u${(this.#uids += 1)}`, true));
        break;
      case 'write here':
        if (known && this.mirror.revisionOf(name) === known.revision)
          this.#learnLater(this.#write(name, known.uid, true));
        break;
      case 'remove here':
        if (known && this.mirror.revisionOf(name) === known.revision) this.#removeHere(known);
        break;
      case 'answer write':
        this.#answers.splice(n % Math.max(1, this.#answers.length), 1)[0]?.();
        break;
      case 'hear':
        this.#hear();
        break;
      case 'bookmark':
        this.#bookmark();
        break;
      case 'cut':
        if (n === 0) this.#watchedTo = undefined;
        break;
      case 'list':
        this.#list();
        break;
      case 'page':
        this.#page();
        break;
      case 'look':
        this.#look();
        break;
    }
  }

  /** All messages arrive, and nothing more happens. */
  rest(): void {
    this.#serveReads(0, this.#readings.length);
    while (this.#readings.length > 0) this.#answerRead(0);
    for (const answer of this.#answers.splice(0)) answer();
    while (this.#listing) this.#page();
    if (this.#watchedTo === undefined) this.#list();
    while (this.#listing) this.#page();
    while (this.#hear());
    for (let again = 0; again < 2; again++) this.#look();
  }

  /** One that lost its label before it was shown is invisible. */
  get standing(): ReadonlyMap<string, number> {
    const known = [...this.#objects.values()].filter(
      ({ uid, record }) =>
        record?.isLabelled || this.shown.some((change) => change.record.uid === uid),
    );
    return new Map(known.map(({ key, record }) => [key, record?.revision ?? 0]));
  }

  /** Existing objects outside the watch. */
  get unwatched(): readonly string[] {
    return [...this.standing.keys()].filter(
      (name) => this.#objects.get(name)?.record?.isLabelled === false,
    );
  }

  get mirrored(): ReadonlyMap<string, number> {
    return new Map(
      NAMES.flatMap((name) => {
        const record = this.mirror.get(name);
        return record ? [[name, record.revision] as const] : [];
      }),
    );
  }

  /** Undefined if it exists. */
  endOf(uid: string): number | undefined {
    const end = this.#log.find(
      ({ type, version }) =>
        type === 'gone' &&
        version.uid === uid &&
        ![...this.#objects.values()].some((object) => object.uid === uid),
    );
    return end && Number(end.version.revision);
  }

  #next(): number {
    return (this.#revision += 1);
  }

  #write(key: string, uid: string, isLabelled: boolean): Version<Kept> {
    const revision = this.#next();
    const version = { key, uid, revision: String(revision), record: { uid, revision, isLabelled } };
    const wasLabelled = this.#objects.get(key)?.record?.isLabelled ?? false;
    this.#objects.set(key, version);
    if (isLabelled) this.#log.push({ type: 'put', version });
    else if (wasLabelled) this.#log.push({ type: 'gone', version }); // as a watch by a label tells it
    return version;
  }

  #remove(known: Version<Kept>): void {
    this.#objects.delete(known.key);
    const version = { ...known, revision: String(this.#next()) };
    if (known.record?.isLabelled) this.#log.push({ type: 'gone', version });
  }

  #removeHere(known: Version<Kept>): void {
    this.#remove(known);
    this.#answers.push(() => {
      this.mirror.removed(
        known.key,
        known.uid.length % 2 === 0 ? { uid: known.uid } : { revision: known.revision },
      );
    });
  }

  #learnLater(version: Version<Kept>): void {
    this.#answers.push(() => {
      this.mirror.learn(version);
    });
  }

  #serveReads(from: number, count: number): void {
    const waiting = this.#readings.filter(({ seen }) => !seen);
    for (const reading of count === 1
      ? waiting.slice(from % Math.max(1, waiting.length)).slice(0, 1)
      : waiting)
      reading.seen = { version: this.#objects.get(reading.name) };
  }

  #answerRead(n: number): void {
    const served = this.#readings.filter(({ seen }) => seen);
    const reading = served[n % Math.max(1, served.length)];
    if (!reading) return;
    this.#readings.splice(this.#readings.indexOf(reading), 1);
    reading.found(reading.seen?.version);
  }

  #hear(): boolean {
    const watchedTo = this.#watchedTo;
    if (watchedTo === undefined || this.#listing) return false;
    const told = this.#log.find(({ version }) => Number(version.revision) > watchedTo);
    if (!told) return false;
    if (told.type === 'put') this.mirror.told(told.version);
    else this.mirror.toldGone(told.version);
    this.#watchedTo = Number(told.version.revision);
    this.mirror.advance(told.version.revision);
    return true;
  }

  #bookmark(): void {
    if (
      this.#watchedTo === undefined ||
      this.#listing ||
      this.#log.some(({ version }) => Number(version.revision) > (this.#watchedTo ?? 0))
    )
      return;
    this.#watchedTo = this.#revision;
    this.mirror.advance(String(this.#revision));
  }

  #list(): void {
    this.#watchedTo = undefined;
    const items = [...this.#objects.values()].filter(({ record }) => record?.isLabelled);
    this.#listing = { list: this.mirror.list(), items, revision: this.#revision };
  }

  #page(): void {
    if (!this.#listing) return;
    const { list, items, revision } = this.#listing;
    for (const item of items.splice(0, PAGE)) list.put(item);
    if (items.length > 0) return;
    for (const _ of list.complete(String(revision)));
    this.#listing = undefined;
    this.#watchedTo = revision;
  }

  /** Uncached reads, where only they reveal a change. */
  #look(): void {
    for (const key of this.mirror.doubted) this.mirror.read(key)(this.#objects.get(key));
  }
}
