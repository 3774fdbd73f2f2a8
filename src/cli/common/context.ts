import type { Readable, Writable } from 'node:stream';
import type { NamedTexts } from '../../daemon/config/environment.ts';

/** The environment of a command, besides its arguments. */
export interface CliContext {
  readonly env: NamedTexts;
  readonly stdin: Readable & Partial<Pick<NodeJS.ReadStream, 'isTTY' | 'setRawMode'>>;
  readonly stdout: Writable &
    Partial<Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'rows'>> & { readonly fd?: number };
  readonly stderr: Writable & Partial<Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>>;
}

/** Ignores a reader that has left. */
export const print = async (stream: Writable, text: string): Promise<void> => {
  if (text === '') return;
  await new Promise<void>((resolve) => {
    stream.write(text, () => resolve());
  });
};

export const say = async ({ stderr }: CliContext, ...lines: readonly string[]): Promise<void> => {
  await print(stderr, `sandpool: ${lines.join('\n  ')}\n`);
};
