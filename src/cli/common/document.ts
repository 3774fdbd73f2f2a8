import { createReadStream } from 'node:fs';
import type { CliContext } from './context.ts';
import { CliFailure } from './failure.ts';

export type FileDocument = Readonly<Record<string, unknown>>;

/** As the service. */
const MAX_BYTES = 1024 * 1024;

/** Reads an object from YAML or JSON; `-` is standard input. Rejects with the file's fault. */
export const readDocument = async (context: CliContext, file: string): Promise<FileDocument> => {
  const text = await readText(context, file);
  const value = jsonIn(text) ?? (await yamlIn(text, file));
  if (isObject(value)) return value;
  throw new CliFailure(`${nameOf(file)} does not contain an object`, [
    'write one field per line, such as: replicas: 4',
  ]);
};

/** `-` is standard input. */
export const readText = async ({ stdin }: CliContext, file: string): Promise<string> => {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of file === '-' ? stdin : createReadStream(file)) {
      const bytes = Buffer.from(chunk as string | Buffer);
      size += bytes.length;
      if (size > MAX_BYTES) break;
      chunks.push(bytes);
    }
  } catch (error) {
    throw new CliFailure(
      `${nameOf(file)} can’t be read: ${error instanceof Error ? error.message : String(error)}`,
      [],
      { cause: error },
    );
  }
  if (size > MAX_BYTES)
    throw new CliFailure(`${nameOf(file)} is larger than ${MAX_BYTES / 1024 / 1024} MiB`);
  return Buffer.concat(chunks).toString('utf8');
};

/** Refuses two different names. `at` is the field in the file. */
export const agreedName = (operand: unknown, inFile: unknown, at: string): string => {
  if (typeof operand === 'string' && typeof inFile === 'string' && operand !== inFile) {
    throw new CliFailure(`the file describes ${inFile}, not ${operand}`, [
      `omit the name, or change ${at} in the file`,
    ]);
  }
  const name = operand ?? inFile;
  if (typeof name !== 'string' || name === '')
    throw new CliFailure('no name was given', [
      `name it on the command line, or in a file (-f) as ${at}`,
    ]);
  return name;
};

/** The file's value of a field, overridden by `more`. Empty if `more` is empty. */
export const within = (field: string, file: FileDocument, more: object): FileDocument =>
  Object.keys(more).length === 0
    ? {}
    : { [field]: { ...(isObject(file[field]) ? file[field] : {}), ...more } };

export const isObject = (value: unknown): value is FileDocument =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const jsonIn = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // YAML: its parser describes the fault better
  }
};

const yamlIn = async (text: string, file: string): Promise<unknown> => {
  const { parseDocument } = await import('yaml');
  const document = parseDocument(text);
  const [fault] = document.errors;
  if (fault)
    throw new CliFailure(
      `${nameOf(file)} is neither YAML nor JSON: ${fault.message.split('\n')[0] ?? ''}`,
      fault.code === 'MULTIPLE_DOCS' ? ['use one file for each document'] : [],
    );
  try {
    return document.toJS() as unknown;
  } catch (error) {
    throw new CliFailure(
      `${nameOf(file)} can’t be read: ${error instanceof Error ? error.message : String(error)}`,
      [],
      { cause: error },
    );
  }
};

const nameOf = (file: string): string => (file === '-' ? 'standard input' : file);
