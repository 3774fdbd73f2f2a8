import { CliFailure } from '../common/failure.ts';
import { type CliContext, print } from '../common/context.ts';

const LONGEST = 1_024;

/**
 * The first line of standard input without a terminal. Never an argument, since everybody on the
 * machine can read arguments.
 */
export const readPassword = async (context: CliContext): Promise<string> => {
  const { stdin, stderr } = context;
  if (!stdin.isTTY || !stdin.setRawMode) return firstLine(await allOf(stdin));
  // Before the prompt, so that nothing typed is shown.
  stdin.setRawMode(true);
  try {
    const first = await typed(context, 'Password: ');
    const second = await typed(context, 'Again: ');
    if (first !== second) throw new CliFailure('the two passwords differ');
    return first;
  } finally {
    stdin.setRawMode(false);
    await print(stderr, '');
  }
};

const allOf = async (stdin: CliContext['stdin']): Promise<string> => {
  let text = '';
  for await (const chunk of stdin as AsyncIterable<Buffer | string>) {
    text += chunk.toString();
    if (text.length > LONGEST) break;
  }
  return text;
};

const firstLine = (text: string): string => {
  const line = text.split('\n', 1)[0]?.replace(/\r$/, '') ?? '';
  if (line === '') throw new CliFailure('there is no password on standard input');
  return line;
};

const typed = async (context: CliContext, question: string): Promise<string> => {
  const { stdin, stderr } = context;
  await print(stderr, question);
  try {
    return await new Promise<string>((resolve, reject) => {
      let text = '';
      const onData = (chunk: Buffer | string): void => {
        for (const character of chunk.toString()) {
          if (character === '\r' || character === '\n') return done(() => resolve(text));
          if (character === '\u0003' || character === '\u0004')
            return done(() => reject(new CliFailure('called off')));
          if (character === '\u007f' || character === '\b') text = text.slice(0, -1);
          else if (text.length < LONGEST) text += character;
        }
      };
      const done = (settle: () => void): void => {
        stdin.off('data', onData);
        stdin.pause();
        settle();
      };
      stdin.on('data', onData);
      stdin.resume();
    });
  } finally {
    await print(stderr, '\n');
  }
};
