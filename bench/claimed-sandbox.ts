import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { StreamAsk } from './answer-stream.ts';
import { Child } from './child.ts';
import { Daemon } from './daemon.ts';
import type { Bench } from './figure.ts';
import type { RawAnswer, RawOrder } from './raw-launcher.ts';

const LAUNCHER = resolve('native/build-output/launcher');
const ROOMY = { cpu: '2', memory: '1Gi' };
const POOL = 'bench';

/** One sandbox, by the API and by the launcher alone. */
export class ClaimedSandbox {
  readonly daemon: Daemon;
  readonly id: string;
  readonly key: string;
  readonly #raw: Child<RawOrder, RawAnswer>;
  readonly #folder: string;

  constructor(
    daemon: Daemon,
    id: string,
    { raw, folder }: { readonly raw: Child<RawOrder, RawAnswer>; readonly folder: string },
  ) {
    this.daemon = daemon;
    this.id = id;
    this.key = tenantKeyOf(daemon);
    this.#raw = raw;
    this.#folder = folder;
  }

  /** What is asked of it, by its path beneath the sandbox. */
  ask(ask: Pick<StreamAsk, 'method' | 'path' | 'headers' | 'body'>): StreamAsk {
    return {
      ...ask,
      path: `/sandboxes/${this.id}/${ask.path}`,
      port: this.daemon.service.port,
      key: this.key,
    };
  }

  /** Runs a shell's line in it, which must succeed. */
  async run(command: string): Promise<void> {
    const body = JSON.stringify({ command, timeoutSeconds: 60 });
    const path = `/sandboxes/${this.id}/exec`;
    const answer = await this.daemon.service.call({ method: 'POST', path, body }, 200);
    if (!answer.includes('"exitCode":0,')) throw new Error(`${command}: ${answer.slice(0, 500)}`);
  }

  /** Runs a command so many times by the launcher alone; milliseconds until each was over. */
  async joins(argv: readonly string[], count: number): Promise<readonly number[]> {
    return await this.#launched({ kind: 'joins', argv, count });
  }

  /** Likewise once, with so many bytes on its input, and with its output read to its end. */
  async flows(argv: readonly string[], inputBytes = 0): Promise<number> {
    const [tookMs = Number.NaN] = await this.#launched({ kind: 'flows', argv, inputBytes });
    return tookMs;
  }

  async #launched(
    order:
      | { readonly kind: 'joins'; readonly argv: readonly string[]; readonly count: number }
      | { readonly kind: 'flows'; readonly argv: readonly string[]; readonly inputBytes: number },
  ): Promise<readonly number[]> {
    const answer = await this.#raw.ask({
      ...order,
      launcherPath: LAUNCHER,
      note: join(this.daemon.dataDir, 'run', this.id),
      folder: this.#folder,
    });
    if ('failed' in answer) throw new Error(`the launcher alone failed: ${answer.failed}`);
    return answer.tookMs;
  }
}

/** Runs with one sandbox that has room for files of 64 MiB; ends all that was started. */
export const withSandbox = async <T>(
  bench: Bench,
  run: (sandbox: ClaimedSandbox) => Promise<T>,
  flags: readonly string[] = [],
): Promise<T> => {
  const raw = new Child<RawOrder, RawAnswer>('raw-launcher');
  try {
    const daemon = await Daemon.start(bench.load, [
      '--templates-dir',
      roomyTemplates(bench),
      ...flags,
    ]);
    try {
      await daemon.service.createFullPool(POOL, 1);
      const id = await daemon.service.claim(POOL);
      await daemon.calm();
      return await run(new ClaimedSandbox(daemon, id, { raw, folder: bench.folder }));
    } finally {
      await daemon.dispose();
    }
  } finally {
    await raw.stop();
  }
};

export const tenantKeyOf = ({ dataDir }: Daemon): string =>
  readFileSync(join(dataDir, 'keys', 'tenant.key'), 'utf8').trim();

/** A folder of the default template with room for files of 64 MiB. */
export const roomyTemplates = ({ folder }: Bench): string => {
  const templates = join(folder, 'roomy-templates');
  mkdirSync(templates, { recursive: true });
  const template = JSON.parse(readFileSync(resolve('config/templates/default.json'), 'utf8')) as {
    readonly spec: { readonly containers: { resources: object }[] };
  };
  for (const container of template.spec.containers) container.resources = { limits: ROOMY };
  writeFileSync(join(templates, 'default.json'), JSON.stringify(template));
  return templates;
};
