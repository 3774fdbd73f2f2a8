import { Sandbox as OldestSandbox } from 'e2b-2-8-1';
import { Sandbox as OldSandbox } from 'e2b-2-24-0';
import { Sandbox as LaterSandbox } from 'e2b-2-45-0';
import { Sandbox as LatestSandbox } from 'e2b-2-51-0';

/**
 * The timer of a request, which SDKs leave if the request fails. It must not keep the tests'
 * process alive; a request that waits does, by its socket.
 */
const REQUEST_MS = 60_000;
const begin = globalThis.setTimeout;
globalThis.setTimeout = Object.assign(
  (act: (...args: unknown[]) => void, ms?: number, ...args: unknown[]): NodeJS.Timeout => {
    const timer = begin(act, ms, ...args);
    return ms === REQUEST_MS ? timer.unref() : timer;
  },
  begin,
);

/** What the versions have in common, as far as tests call it. */
export interface SdkSandbox {
  readonly sandboxId: string;
  getHost(port: number): string;
  isRunning(): Promise<boolean>;
  getInfo(): Promise<SdkInfo>;
  setTimeout(ms: number): Promise<void>;
  kill(): Promise<unknown>;
  uploadUrl(path: string, options?: LinkOptions): Promise<string>;
  downloadUrl(path: string, options?: LinkOptions): Promise<string>;
  readonly commands: SdkCommands;
  readonly files: SdkFiles;
  readonly pty: SdkPty;
}

export interface SdkResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface SdkHandle {
  readonly pid: number;
  wait(): Promise<SdkResult>;
  kill(): Promise<boolean>;
  disconnect(): Promise<void>;
}

interface RunOptions {
  readonly cwd?: string;
  readonly envs?: Readonly<Record<string, string>>;
  readonly user?: string;
  readonly timeoutMs?: number;
  readonly stdin?: boolean;
  readonly onStdout?: (text: string) => void;
}

export interface SdkCommands {
  run(command: string, options?: RunOptions): Promise<SdkResult>;
  run(command: string, options: RunOptions & { background: true }): Promise<SdkHandle>;
  connect(pid: number): Promise<SdkHandle>;
  list(): Promise<readonly { readonly pid: number; readonly cmd: string }[]>;
  kill(pid: number): Promise<boolean>;
  sendStdin(pid: number, data: string): Promise<void>;
  /** Since 2.24. */
  closeStdin?: (pid: number) => Promise<void>;
}

export interface SdkPty {
  create(options: {
    readonly cols: number;
    readonly rows: number;
    readonly onData: (bytes: Uint8Array) => void;
  }): Promise<SdkHandle>;
  resize(pid: number, size: { readonly cols: number; readonly rows: number }): Promise<void>;
  sendInput(pid: number, bytes: Uint8Array): Promise<void>;
}

export interface SdkEntry {
  readonly name: string;
  readonly path: string;
  readonly type: string;
  readonly size?: number;
  /** Since 2.45. */
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface SdkFiles {
  write(path: string, data: string | Blob | ReadableStream, options?: object): Promise<SdkEntry>;
  write(files: readonly { readonly path: string; readonly data: string }[]): Promise<SdkEntry[]>;
  read(path: string, options?: { readonly gzip?: boolean }): Promise<string>;
  list(path: string, options?: { readonly depth?: number }): Promise<readonly SdkEntry[]>;
  exists(path: string): Promise<boolean>;
  makeDir(path: string): Promise<boolean>;
  rename(from: string, to: string): Promise<SdkEntry>;
  remove(path: string): Promise<void>;
  getInfo(path: string): Promise<SdkEntry>;
  watchDir(
    path: string,
    onEvent: (event: { readonly type: string; readonly name: string }) => void,
    options?: { readonly recursive?: boolean },
  ): Promise<{ stop(): Promise<void> }>;
}

export interface LinkOptions {
  readonly useSignatureExpiration?: number;
}

export interface SdkInfo {
  readonly sandboxId: string;
  readonly templateId: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly startedAt: Date;
  readonly endAt: Date;
  readonly state: string;
  readonly cpuCount: number;
  readonly memoryMB: number;
}

export interface SdkPage {
  readonly hasNext: boolean;
  nextItems(): Promise<readonly SdkInfo[]>;
}

export interface SdkOptions {
  readonly apiKey: string;
  readonly apiUrl: string;
  readonly sandboxUrl: string;
}

export interface CreateOptions extends SdkOptions {
  readonly timeoutMs?: number;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly envs?: Readonly<Record<string, string>>;
}

export interface ListOptions extends SdkOptions {
  readonly limit?: number;
  readonly query?: {
    readonly metadata?: Readonly<Record<string, string>>;
    readonly state?: readonly string[];
  };
}

/** The class of one version of the package, whose own types differ in what is not called here. */
export interface Sdk {
  create(template: string, options: CreateOptions): Promise<SdkSandbox>;
  connect(id: string, options: SdkOptions & { timeoutMs?: number }): Promise<SdkSandbox>;
  kill(id: string, options: SdkOptions): Promise<boolean>;
  setTimeout(id: string, ms: number, options: SdkOptions): Promise<void>;
  getInfo(id: string, options: SdkOptions): Promise<SdkInfo>;
  list(options: ListOptions): SdkPage;
}

/** E2B's packages as they are published, by version. */
export const SDKS: ReadonlyMap<string, Sdk> = new Map<string, unknown>([
  ['2.8.1', OldestSandbox],
  ['2.24.0', OldSandbox],
  ['2.45.0', LaterSandbox],
  ['2.51.0', LatestSandbox],
]) as ReadonlyMap<string, Sdk>;
