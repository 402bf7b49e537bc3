# The app in a container; docs/deploy.md says how to run it.
#   docker build -t watch-a-transformer .                                            a CPU
#   docker build -t watch-a-transformer --build-arg TORCH_INDEX=https://pypi.org/simple .    CUDA
#   docker build … --build-arg REQUIREMENTS=requirements-cluster.txt .               Ray, too
#   docker build … --build-arg REQUIREMENTS=requirements-login.txt .                 what logs people in
#   docker build … --build-arg REQUIREMENTS=requirements-light.txt .                 no PyTorch: TFM_RECORDED_ONLY=1
ARG PYTHON=3.12
FROM python:${PYTHON}-slim

# PyTorch's own index has a build without CUDA, a tenth of the size; PyPI's for Linux brings CUDA along.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ARG REQUIREMENTS=requirements.txt

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    TFM_RUNS_DIR=/runs \
    TFM_DATA_DIR=/data

WORKDIR /app
COPY requirements.txt requirements-cluster.txt requirements-login.txt requirements-hub.txt requirements-light.txt constraints.txt ./
RUN pip install --no-cache-dir --extra-index-url "${TORCH_INDEX}" -r "${REQUIREMENTS}" -c constraints.txt

RUN useradd --uid 10001 --create-home app \
    && mkdir /runs /data /shared \
    && chown app:app /runs /data /shared
COPY .streamlit .streamlit
COPY tfm_core tfm_core
COPY pages pages
COPY app.py ./
RUN python -m compileall -q app.py pages tfm_core

USER 10001
VOLUME ["/runs", "/data"]
EXPOSE 8501

# 503 says that no run can begin here, and why: docker inspect shows the answer.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8501/health', timeout=4).read().decode())"]

CMD ["streamlit", "run", "app.py"]
