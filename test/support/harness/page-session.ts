import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { spawn as spawnPty } from 'node-pty';
import { rememberChild, rememberProcess } from '../../../local-cluster/started-processes.ts';
import type { PageLine } from '../../../script/page-lines.ts';
import { NEVER_COMES_MS } from './eventually.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const END = '__end_of_line__';
/** Follows the output of typed lines. */
const END_MARK = '\x1d';

export interface PageWorld {
  readonly dataDir: string;
  /** Replaces the page's localhost:8080. */
  readonly host: string;
  /** Working folder; the root of these sources by default. */
  readonly root?: string;
}

/**
 * Types a page's lines into one bash, with a daemon's address and data folder instead of the
 * page's. Standard error is shown too; standard input is empty.
 */
export class PageSession {
  readonly #world: PageWorld;
  readonly #bash: ChildProcess;
  #received = '';
  #heard: (() => void) | undefined;

  constructor(world: PageWorld) {
    this.#world = world;
    this.#bash = spawn('bash', ['--norc', '--noprofile'], {
      cwd: world.root ?? ROOT,
      env: this.#env(),
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    rememberChild('bash of a page', this.#bash);
    this.#bash.stdout?.on('data', (chunk: Buffer) => {
      this.#received += chunk.toString();
      this.#heard?.();
    });
    this.#bash.stdin?.write('exec 2>&1\n');
  }

  /** In the page's form. Rejects if the line does not end. */
  async run({ command, inside }: PageLine): Promise<string> {
    const text = command
      .replaceAll(/(localhost|127\.0\.0\.1):8080/g, this.#world.host)
      .replaceAll('/var/lib/sandpool', this.#world.dataDir);
    const shown =
      inside.length > 0
        ? await this.#converse(
            text,
            inside.map(({ typed }) => typed),
          )
        : await this.#plain(text);
    return shown
      .replaceAll(this.#world.host, 'localhost:8080')
      .replaceAll(this.#world.dataDir, '/var/lib/sandpool')
      .replace(/\n+$/, '');
  }

  async close(): Promise<void> {
    const ended = once(this.#bash, 'exit');
    this.#bash.stdin?.end('exit\n');
    this.#bash.kill('SIGKILL');
    await ended;
  }

  async #plain(text: string): Promise<string> {
    this.#received = '';
    this.#bash.stdin?.write(`{ ${text}\n} </dev/null\nprintf '\\n%s\\n' ${END}\n`);
    const deadline = performance.now() + NEVER_COMES_MS;
    while (!this.#received.includes(`\n${END}\n`)) {
      if (performance.now() > deadline || this.#bash.exitCode !== null)
        throw new Error(`does not end: ${text}\n${this.#received}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 1_000);
        this.#heard = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return this.#received.slice(0, this.#received.indexOf(`\n${END}\n`));
  }

  /** Types the next line at each of the program's prompts. */
  async #converse(text: string, typed: readonly string[]): Promise<string> {
    // ends once all is read: node-pty may lose the rest
    const script = `${text}\nprintf '\\035'; read -r _`;
    const pty = spawnPty('bash', ['--norc', '--noprofile', '-c', script], {
      cwd: this.#world.root ?? ROOT,
      env: this.#env(),
      cols: 200,
      rows: 50,
    });
    let output = '';
    let end: string | undefined;
    rememberProcess({
      name: `terminal: ${text}`,
      pid: pty.pid,
      output: () => output,
      end: () => end,
    });
    let next = 0;
    const timer = setTimeout(() => pty.kill('SIGKILL'), NEVER_COMES_MS);
    pty.onData((chunk) => {
      output += chunk;
      if (output.endsWith(END_MARK)) pty.write('\r');
      if (!output.endsWith('$ ')) return;
      const line = typed[next];
      next += 1;
      if (line !== undefined) pty.write(`${line}\r`);
    });
    await new Promise<void>((resolve) => {
      pty.onExit(({ exitCode, signal }) => {
        end = signal ? `killed by signal ${signal}` : `exit code ${exitCode}`;
        resolve();
      });
    });
    clearTimeout(timer);
    const [shown = ''] = output.split(END_MARK);
    return shown.replaceAll('\r', '').replaceAll(/\u001b\[[0-9;?]*[a-zA-Z]/g, '');
  }

  #env(): Record<string, string> {
    const inherited = Object.entries(process.env).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined && !entry[0].startsWith('SANDPOOL_'),
    );
    return {
      ...Object.fromEntries(inherited),
      SANDPOOL_DATA_DIR: this.#world.dataDir,
      NO_COLOR: '1',
      LC_ALL: 'C.UTF-8',
    };
  }
}
