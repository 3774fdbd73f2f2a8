import { FileRefused, type SandboxFiles } from '../../../src/contracts/files.ts';
import { ProcessesNotProvided, type ProcessDriver } from '../../../src/contracts/processes.ts';

export const noFiles = (why: string): SandboxFiles => {
  const refuse = (): Promise<never> => Promise.reject(new FileRefused('unsupported', why));
  return {
    provided: false,
    prepare: () => {},
    stat: refuse,
    open: refuse,
    write: (_place, { content }) => {
      if ('destroy' in content) content.destroy();
      return refuse();
    },
    remove: refuse,
    list: refuse,
    move: refuse,
    mkdir: refuse,
    watch: refuse,
    readTree: refuse,
    writeTree: (_place, archive) => {
      archive.destroy();
      return refuse();
    },
  };
};

/** Says what to do instead. */
export class NoProcesses implements ProcessDriver {
  readonly provided = false;
  readonly #hint: string;

  constructor(hint: string) {
    this.#hint = hint;
  }

  start = (): Promise<never> => this.#refuse();
  run = (): Promise<never> => this.#refuse();
  list = (): Promise<never> => this.#refuse();
  find = (): Promise<never> => this.#refuse();
  write = (): Promise<never> => this.#refuse();
  closeInput = (): Promise<never> => this.#refuse();
  resize = (): Promise<never> => this.#refuse();
  signal = (): Promise<never> => this.#refuse();
  remove = (): Promise<never> => this.#refuse();

  async *output(): AsyncGenerator<never, void, undefined> {
    yield await this.#refuse();
  }

  #refuse(): Promise<never> {
    return Promise.reject(new ProcessesNotProvided(this.#hint));
  }
}
