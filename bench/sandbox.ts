import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Child } from './child.ts';
import { Daemon } from './daemon.ts';
import type { Bench } from './figure.ts';
import type { RawOrder } from './raw-launcher.ts';
import type { Place } from './transfers.ts';

export const LAUNCHER = resolve('native/build-output/launcher');
const ROOMY = { cpu: '2', memory: '1Gi' };

/** Room for files of 64 MiB. */
export class Sandbox {
  readonly daemon: Daemon;
  readonly place: Place;
  readonly #folder: string;
  readonly #raw = new Child<RawOrder, readonly number[]>('raw-launcher');

  private constructor(daemon: Daemon, id: string, folder: string) {
    this.daemon = daemon;
    this.#folder = folder;
    const { service, key } = daemon;
    this.place = { service, key, id, folder: '/tmp' };
  }

  static async start(bench: Bench, flags: readonly string[] = []): Promise<Sandbox> {
    const terms = ['--templates-dir', roomyTemplates(bench), ...flags];
    const daemon = await Daemon.start(bench.load, terms);
    await daemon.service.createFullPool('one', 1);
    const id = await daemon.service.claim('one');
    await daemon.calm();
    return new Sandbox(daemon, id, bench.folder);
  }

  /** Milliseconds of each. */
  joins(argv: readonly string[], count: number): Promise<readonly number[]> {
    return this.#raw.ask({ kind: 'joins', argv, count, ...this.#where });
  }

  /** 64 MiB as input, or none. Returns milliseconds. */
  async flows(argv: readonly string[], { hasInput = false } = {}): Promise<number> {
    const order = { kind: 'flows', argv, hasInput, ...this.#where } as const;
    const [tookMs = Number.NaN] = await this.#raw.ask(order);
    return tookMs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.daemon[Symbol.asyncDispose]();
    await this.#raw[Symbol.asyncDispose]();
  }

  get #where(): Pick<Extract<RawOrder, { kind: 'joins' }>, 'launcherPath' | 'note' | 'folder'> {
    const note = join(this.daemon.dataDir, 'run', this.place.id);
    return { launcherPath: LAUNCHER, note, folder: this.#folder };
  }
}

const roomyTemplates = ({ folder }: Bench): string => {
  const templates = join(folder, 'roomy-templates');
  mkdirSync(templates, { recursive: true });
  const template = JSON.parse(readFileSync(resolve('config/templates/default.json'), 'utf8')) as {
    readonly spec: { readonly containers: { resources: object }[] };
  };
  for (const container of template.spec.containers) container.resources = { limits: ROOMY };
  writeFileSync(join(templates, 'default.json'), JSON.stringify(template));
  return templates;
};
